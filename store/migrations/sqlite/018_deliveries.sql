-- min_reader: 18
-- Deliveries are chosen by Endpoint, and wait by the clock of timers.

-- How far that clock was ahead of `created_at`.
ALTER TABLE outputs ADD COLUMN timers_ahead BIGINT NOT NULL DEFAULT 0;

-- `due_at` is 0 until a try has failed. Ids have 24 characters, and a key begins with the project's.
ALTER TABLE outbox ADD COLUMN endpoint_id TEXT NOT NULL DEFAULT '';
UPDATE outbox SET endpoint_id =
  (SELECT substr(s.key, 26, 24) FROM sessions s WHERE s.id = outbox.session);
UPDATE outbox SET due_at = 0 WHERE attempts = 0;
DROP INDEX outbox_by_due;
CREATE INDEX outbox_by_endpoint ON outbox (endpoint_id, due_at, session);
