-- The item that a cursor of a numbered list stands at: where it is removed, the cursor moves on to its
-- neighbour, since the numbers may be given to others.
ALTER TABLE cursors ADD COLUMN item TEXT;
CREATE INDEX cursors_by_item ON cursors (item) WHERE item IS NOT NULL;
