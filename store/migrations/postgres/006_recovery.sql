-- What a recovery goes by until its end, over all starts between: rows while one is going on (`meta` has
-- `recovering_since` then), else none. The epoch is the partition's at the first of these starts.
CREATE TABLE recovery_limits (
  log_partition BIGINT PRIMARY KEY,
  epoch BIGINT NOT NULL,
  log_offset BIGINT NOT NULL
);
