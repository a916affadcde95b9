-- Recovery by partition, since partitions go from daemon to daemon.

-- Of the partition that the event is in; -1: not known.
ALTER TABLE attempts ADD COLUMN log_partition BIGINT NOT NULL DEFAULT -1;
-- When the recovery of this partition was begun for the first time.
ALTER TABLE recovery_limits ADD COLUMN since BIGINT NOT NULL DEFAULT 0;
UPDATE recovery_limits SET since = COALESCE((SELECT value FROM meta WHERE name = 'recovering_since'), 0);
DELETE FROM meta WHERE name = 'recovering_since';

-- When the marker was written: those of daemons that are gone for good can be told by it.
ALTER TABLE writers ADD COLUMN written_at BIGINT NOT NULL DEFAULT 0;

CREATE INDEX sessions_with_inbox ON sessions (id) WHERE inbox_size > 0;
