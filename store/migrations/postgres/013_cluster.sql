-- Several daemons on one store. Additions only.

-- Those that run: each says again and again that it is there. `run` is new at each start. Times are
-- this server's, so that nobody's clock matters.
CREATE TABLE daemons (
  id plain_text PRIMARY KEY,
  run plain_text NOT NULL,
  roles plain_text NOT NULL,
  version plain_text NOT NULL,
  partitions plain_text NOT NULL,
  started_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL
);

-- Which run took up a partition and has not given it up with all that it had begun finished: what
-- is here at an assignment was left behind by a crash.
CREATE TABLE partition_runs (
  log_partition BIGINT PRIMARY KEY,
  run plain_text NOT NULL
);

-- Answers on their way from the daemon that ran the Turn to the one whose client waits. Whoever
-- removes the row decides where the outputs go.
CREATE TABLE replies (
  input_id plain_text NOT NULL,
  daemon plain_text NOT NULL,
  session_key plain_text NOT NULL,
  status BIGINT NOT NULL,
  body plain_text NOT NULL,
  else_webhook BIGINT NOT NULL CHECK (else_webhook IN (0, 1)),
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (daemon, input_id)
);
CREATE INDEX replies_by_expiry ON replies (expires_at);
