-- The hosts that a Connection is for, and whose a client's `Idempotency-Key` is. Additions only.

-- With blanks between them; empty: it is for any.
ALTER TABLE connections ADD COLUMN hosts plain_text NOT NULL DEFAULT '';

-- The key of the session that the request was for; empty: for none.
ALTER TABLE append_keys ADD COLUMN session_key plain_text NOT NULL DEFAULT '';
CREATE INDEX append_keys_by_session ON append_keys (session_key);
ALTER TABLE keyed_answers ADD COLUMN session_key plain_text NOT NULL DEFAULT '';
CREATE INDEX keyed_answers_by_session ON keyed_answers (session_key);
