-- Version 1 of the schema: long work.

-- Jobs. store/model/job.h has the transitions of `state`.
CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  n BIGINT NOT NULL UNIQUE,
  project_id TEXT NOT NULL,
  type TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'active', 'cancelling', 'done', 'cancelled', 'error')),
  progress BIGINT NOT NULL CHECK (progress BETWEEN 0 AND 100),
  current_step BIGINT NOT NULL,
  total_steps BIGINT NOT NULL,
  fail_reason TEXT NOT NULL,
  data TEXT NOT NULL,  -- JSON
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  fencing_token BIGINT NOT NULL,
  lease_until BIGINT NOT NULL
) WITHOUT ROWID;
-- A project's jobs, page by page.
CREATE INDEX jobs_by_project ON jobs (project_id, n);
-- At most one job of a type runs in a project, and a project is set up once.
CREATE UNIQUE INDEX jobs_one_active ON jobs (project_id, type)
  WHERE state IN ('queued', 'active', 'cancelling') OR (state = 'done' AND type = 'proactiveSetup');
-- Jobs whose lease has ended.
CREATE INDEX jobs_by_lease ON jobs (lease_until) WHERE state IN ('queued', 'active', 'cancelling');
-- The oldest job that no worker has taken.
CREATE INDEX jobs_queued ON jobs (created_at) WHERE state = 'queued';
-- Ended jobs that are older than the retention.
CREATE INDEX jobs_over ON jobs (changed_at)
  WHERE state IN ('cancelled', 'error') OR (state = 'done' AND type <> 'proactiveSetup');
