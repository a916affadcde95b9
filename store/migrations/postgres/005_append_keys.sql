-- What a client's `Idempotency-Key` stands for, where the log keeps no keys itself. The row is there
-- before the record is appended; the position is NULL until the log has answered.
CREATE TABLE append_keys (
  scope plain_text NOT NULL,
  idempotency_key plain_text NOT NULL,
  body_hash plain_text NOT NULL,
  event_id plain_text NOT NULL,
  epoch BIGINT,
  log_partition BIGINT,
  log_offset BIGINT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (scope, idempotency_key)
);
CREATE INDEX append_keys_by_age ON append_keys (created_at);
