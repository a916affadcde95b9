-- Several daemons on one store: PostgreSQL only can have them. Here for the statements that both
-- dialects share. Additions only.

CREATE TABLE daemons (
  id TEXT PRIMARY KEY,
  run TEXT NOT NULL,
  roles TEXT NOT NULL,
  version TEXT NOT NULL,
  partitions TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE partition_runs (
  log_partition BIGINT PRIMARY KEY,
  run TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE replies (
  input_id TEXT NOT NULL,
  daemon TEXT NOT NULL,
  session_key TEXT NOT NULL,
  status BIGINT NOT NULL,
  body TEXT NOT NULL,
  else_webhook BIGINT NOT NULL CHECK (else_webhook IN (0, 1)),
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (daemon, input_id)
) WITHOUT ROWID;
CREATE INDEX replies_by_expiry ON replies (expires_at);
