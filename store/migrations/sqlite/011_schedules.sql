-- Injects that come at their time. `claim` is that of the next event; `cron` is NULL if it comes
-- once. `message` is text and data as JSON.
CREATE TABLE schedules (
  id TEXT PRIMARY KEY,
  n INTEGER NOT NULL UNIQUE,
  project_id TEXT NOT NULL REFERENCES projects (id),
  key TEXT NOT NULL,
  message TEXT NOT NULL,
  cron TEXT,
  timezone TEXT NOT NULL,
  claim TEXT NOT NULL UNIQUE,
  run BIGINT NOT NULL CHECK (run > 0),
  due_at BIGINT NOT NULL,
  fired BIGINT NOT NULL CHECK (fired >= 0),
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX schedules_by_due ON schedules (due_at, claim);
CREATE INDEX schedules_by_project ON schedules (project_id, n);
