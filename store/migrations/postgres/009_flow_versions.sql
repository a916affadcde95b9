-- Who made a version of a Flow, and when; of versions from before these columns nobody knows.
-- `restored_from` is the version that a rollback made it equal to.
ALTER TABLE flow_versions ADD COLUMN created_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE flow_versions ADD COLUMN created_by plain_text NOT NULL DEFAULT '';
ALTER TABLE flow_versions ADD COLUMN restored_from BIGINT;

-- The URL with its `${NAME}`, if there is one in it: an export writes that.
ALTER TABLE endpoints ADD COLUMN webhook_url_source plain_text NOT NULL DEFAULT '';

-- What is pinned to versions of Flows: few, in a table that may be long.
CREATE INDEX sessions_busy ON sessions (project_id, id) WHERE execution IS NOT NULL;
