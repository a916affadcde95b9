-- The item that a cursor of a numbered list stands at: where it is removed, the cursor moves on to its
-- neighbour, since the numbers may be given to others.
ALTER TABLE cursors ADD COLUMN item plain_text;
CREATE INDEX cursors_by_item ON cursors (item) WHERE item IS NOT NULL;

-- What is held for clients that wait: few, in a table that may be long.
CREATE INDEX outputs_held ON outputs (session) WHERE delivery = 1;
