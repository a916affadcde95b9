-- How many uses have appended, or are about to, under a row without a position: one of them whose
-- append came to nothing frees the key only if it was alone. Additions only.
ALTER TABLE append_keys ADD COLUMN uses BIGINT NOT NULL DEFAULT 1;
