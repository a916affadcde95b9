-- Version 1 of the schema: the daemons that use the store, and their progress in the log. A SQLite
-- file has one daemon, and the tables are there for the statements that both databases share.

-- Single numbers by their name.
CREATE TABLE meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL) WITHOUT ROWID;

-- The newest transaction of each writer. It tells whether a COMMIT that reported an error took effect.
CREATE TABLE writers (
  id TEXT PRIMARY KEY,
  batch BIGINT NOT NULL,
  written_at BIGINT NOT NULL  -- old rows are of daemons that are gone for good
) WITHOUT ROWID;

-- The highest offset of each partition whose effects are in the store.
CREATE TABLE log_positions (
  epoch BIGINT NOT NULL,
  log_partition BIGINT NOT NULL,
  log_offset BIGINT NOT NULL,
  PRIMARY KEY (epoch, log_partition)
) WITHOUT ROWID;

-- The shard of each partition of the log (store/shards/layout.h). In the first shard; empty: it has all partitions.
-- `moves_to`: the shard to which the partition is being moved.
CREATE TABLE partition_shards (
  log_partition BIGINT PRIMARY KEY,
  shard BIGINT NOT NULL,
  moves_to BIGINT
) WITHOUT ROWID;
-- The partitions whose sessions this server may change (store/commit/partition_gate.h).
CREATE TABLE open_partitions (log_partition BIGINT PRIMARY KEY) WITHOUT ROWID;
-- Closed partitions of which this server may still have rows.
CREATE TABLE partition_leftovers (log_partition BIGINT PRIMARY KEY) WITHOUT ROWID;

-- The running daemons. Each writes a heartbeat. Times are the database server's.
CREATE TABLE daemons (
  id TEXT PRIMARY KEY,
  run TEXT NOT NULL,  -- new at each start
  roles TEXT NOT NULL,
  version TEXT NOT NULL,
  partitions TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL
) WITHOUT ROWID;

-- The run that owns a partition. Empty: its owner has given it up. If another run takes a partition
-- that was not given up, its owner has crashed.
CREATE TABLE partition_runs (
  log_partition BIGINT PRIMARY KEY,
  run TEXT NOT NULL,
  -- Events that may have been in hand at the last crash: records with lower offsets, and older
  -- events in inboxes. 0: all of them are finished.
  left_below BIGINT NOT NULL,
  left_since BIGINT NOT NULL
) WITHOUT ROWID;

-- Events that were in hand when a daemon went down. They run alone until they are committed.
CREATE TABLE attempts (
  event_id TEXT PRIMARY KEY,
  count BIGINT NOT NULL,  -- crashes with the event in hand
  log_partition BIGINT NOT NULL,
  log_offset BIGINT NOT NULL  -- -1: it waited in an inbox
) WITHOUT ROWID;
