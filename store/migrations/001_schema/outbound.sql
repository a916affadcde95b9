-- Version 1 of the schema: outputs, deliveries, calls, follow-ups and schedules of conversations.

-- The outputs of Flows for users. Rows are pruned by age, so the oldest have the lowest ids.
CREATE TABLE outputs (
  id INTEGER PRIMARY KEY,
  session BIGINT NOT NULL REFERENCES sessions (id),
  seq BIGINT NOT NULL CHECK (seq > 0),
  output_id TEXT NOT NULL,
  input_id TEXT NOT NULL,
  text TEXT NOT NULL,
  data TEXT,  -- JSON
  trace_id TEXT NOT NULL,
  tracestate TEXT NOT NULL DEFAULT '',
  source TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  timers_ahead BIGINT NOT NULL  -- how far the clock of timers was ahead of `created_at`
);
-- A session's outputs, also those of an input, which are found without reading the others' rows. The condition on the
-- session's version keeps (session, seq) unique.
CREATE UNIQUE INDEX outputs_by_session ON outputs (session, seq, input_id);

-- Outputs that are still to be delivered. `due_at` and `attempts` belong to the session's oldest one, and are the same in all
-- rows of a session.
CREATE TABLE deliveries (
  session BIGINT NOT NULL REFERENCES sessions (id),
  seq BIGINT NOT NULL,
  output_id TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  -- 1: a follow-up's output whose delivery has not begun. The user's next message withdraws it.
  withdrawable BIGINT NOT NULL CHECK (withdrawable IN (0, 1)),
  due_at BIGINT NOT NULL,    -- by the clock of timers; 0: no try has failed yet
  attempts BIGINT NOT NULL,  -- tries that have failed
  PRIMARY KEY (session, seq)
) WITHOUT ROWID;
-- An Endpoint's sessions that are due.
CREATE INDEX deliveries_by_endpoint ON deliveries (endpoint_id, due_at, session, attempts);

-- Webhooks that fail, or that were paused lately. Times are by the clock of timers.
CREATE TABLE endpoint_health (
  endpoint_id TEXT PRIMARY KEY,
  failing_since BIGINT,           -- NULL: it works again
  failures BIGINT NOT NULL,       -- since then
  last_status BIGINT NOT NULL,    -- HTTP; 0: there was no answer
  last_error TEXT NOT NULL,
  last_at BIGINT NOT NULL,        -- of the last failure
  -- The last pause. Its duration does not count as time of retries, so the row stays until all
  -- outputs from before the pause are too old.
  paused_since BIGINT,            -- NULL: it was not paused
  resumed_at BIGINT,              -- NULL while it is paused
  next_probe BIGINT NOT NULL      -- while it is paused
) WITHOUT ROWID;

-- Calls (`request`) and timers (`due_at`) of executions and questions. The row is the claim.
CREATE TABLE pending_calls (
  id TEXT PRIMARY KEY,
  session BIGINT NOT NULL REFERENCES sessions (id),
  trace_id TEXT NOT NULL,
  tracestate TEXT NOT NULL DEFAULT '',
  due_at BIGINT,
  time_out BIGINT NOT NULL CHECK (time_out IN (0, 1)),  -- 1: of a question; 0: an execution waits for it
  project_id TEXT,  -- of a call
  target TEXT,      -- of a call: store::target_of()
  upstream TEXT,    -- of a call, for people: store::shown_target()
  retries BIGINT NOT NULL DEFAULT 0,  -- of a call: further tries after the first
  time_limit BIGINT,  -- of a try, in milliseconds; NULL: there is none
  try_at BIGINT,    -- of a call: when its next try is due, by the clock of timers
  attempts BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0),  -- tries that have failed
  appended BIGINT NOT NULL DEFAULT 0 CHECK (appended IN (0, 1)),  -- 1: its event is in the log, or the row can't be read
  request TEXT,  -- of a call, JSON; last, because lists do not read it
  CHECK ((request IS NULL) <> (due_at IS NULL)),
  CHECK ((request IS NULL) = (target IS NULL) AND (target IS NULL) = (project_id IS NULL) AND (target IS NULL) = (try_at IS NULL)
    AND (target IS NULL) = (upstream IS NULL))
) WITHOUT ROWID;
-- Timers by their time, until their events are in the log.
CREATE INDEX pending_calls_by_due ON pending_calls (due_at, id) WHERE due_at IS NOT NULL AND appended = 0;
-- Calls to be made, by project and target.
CREATE INDEX pending_calls_to_make ON pending_calls (project_id, target, try_at, id) WHERE target IS NOT NULL AND appended = 0;
-- A session's calls and timers, when it is reset.
CREATE INDEX pending_calls_by_session ON pending_calls (session);
-- The number of calls and timers of executions. With `time_out` SQLite counts them without reading their rows.
CREATE INDEX pending_calls_running ON pending_calls (session, time_out) WHERE time_out = 0;

-- Follow-ups that wait for their time. The row is the claim.
CREATE TABLE follow_ups (
  id TEXT PRIMARY KEY,
  session BIGINT NOT NULL REFERENCES sessions (id),
  trace_id TEXT NOT NULL,
  tracestate TEXT NOT NULL DEFAULT '',
  due_at BIGINT NOT NULL,
  value TEXT NOT NULL,  -- text, data and plan as JSON
  of_journey BIGINT NOT NULL CHECK (of_journey IN (0, 1)),  -- 1: of the project's journey; 0: of a Node
  appended BIGINT NOT NULL DEFAULT 0 CHECK (appended IN (0, 1))  -- as of pending_calls
) WITHOUT ROWID;
-- Follow-ups by their time, until their events are in the log.
CREATE INDEX follow_ups_by_due ON follow_ups (due_at, id) WHERE appended = 0;
-- A session's follow-ups, when the user writes.
CREATE INDEX follow_ups_by_session ON follow_ups (session);

-- Scheduled injects, once or recurring.
CREATE TABLE schedules (
  id TEXT PRIMARY KEY,
  n BIGINT NOT NULL UNIQUE,
  project_id TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  key TEXT NOT NULL,      -- the session's
  message TEXT NOT NULL,  -- text and data as JSON
  cron TEXT,              -- NULL: it comes once
  timezone TEXT NOT NULL,
  claim TEXT NOT NULL UNIQUE,  -- of the next event
  run BIGINT NOT NULL CHECK (run > 0),
  due_at BIGINT NOT NULL,
  fired BIGINT NOT NULL CHECK (fired >= 0),
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  appended BIGINT NOT NULL DEFAULT 0 CHECK (appended IN (0, 1))  -- as of pending_calls; of the next event
) WITHOUT ROWID;
-- Schedules by their time, until their events are in the log.
CREATE INDEX schedules_by_due ON schedules (due_at, claim) WHERE appended = 0;
-- A project's schedules, page by page.
CREATE INDEX schedules_by_project ON schedules (project_id, n);
-- An Endpoint's schedules, when it is to be deleted.
CREATE INDEX schedules_by_endpoint ON schedules (endpoint_id);
-- A user's schedules, when the user's data is read or erased.
CREATE INDEX schedules_by_key ON schedules (key);
