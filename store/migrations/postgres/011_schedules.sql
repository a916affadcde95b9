-- Injects that come at their time. `claim` is that of the next event; `cron` is NULL if it comes
-- once. `message` is text and data as JSON.
CREATE TABLE schedules (
  id plain_text PRIMARY KEY,
  n BIGINT NOT NULL UNIQUE,
  project_id plain_text NOT NULL REFERENCES projects (id),
  key plain_text NOT NULL,
  message plain_text NOT NULL,
  cron plain_text,
  timezone plain_text NOT NULL,
  claim plain_text NOT NULL UNIQUE,
  run BIGINT NOT NULL CHECK (run > 0),
  due_at BIGINT NOT NULL,
  fired BIGINT NOT NULL CHECK (fired >= 0),
  created_at BIGINT NOT NULL,
  created_by plain_text NOT NULL
);
CREATE INDEX schedules_by_due ON schedules (due_at, claim);
CREATE INDEX schedules_by_project ON schedules (project_id, n);
