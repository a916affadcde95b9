-- The first schema. Times are milliseconds since the Unix epoch in UTC; ids are 24 characters of
-- [a-z0-9]; JSON is text. Texts of users may hold any character, NUL too: bytes on PostgreSQL.

CREATE TABLE meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL) WITHOUT ROWID;

-- The number of the newest transaction of each writer: tells whether a COMMIT that reported an
-- error took effect.
CREATE TABLE writers (id TEXT PRIMARY KEY, batch BIGINT NOT NULL) WITHOUT ROWID;

-- Conversations. `id` is what child tables refer to; `key` is model::SessionKey::encode().
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  project_id TEXT NOT NULL,
  version BIGINT NOT NULL CHECK (version > 0),
  position_epoch BIGINT NOT NULL,
  position_partition BIGINT NOT NULL,
  position_offset BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  last_activity_at BIGINT NOT NULL,
  context TEXT NOT NULL,
  flow_state TEXT NOT NULL,
  execution TEXT,
  last_output_seq BIGINT NOT NULL CHECK (last_output_seq >= 0),
  inbox_size BIGINT NOT NULL CHECK (inbox_size >= 0)
);
CREATE INDEX sessions_by_project ON sessions (project_id, id);
CREATE INDEX sessions_to_drain ON sessions (id) WHERE inbox_size > 0 AND execution IS NULL;

CREATE TABLE profiles (
  project_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  version BIGINT NOT NULL CHECK (version > 0),
  data TEXT NOT NULL,
  PRIMARY KEY (project_id, user_id)
) WITHOUT ROWID;

-- Events that wait for their busy session, in the order of `n`.
CREATE TABLE inbox (
  session BIGINT NOT NULL REFERENCES sessions (id),
  n BIGINT NOT NULL,
  event_id TEXT NOT NULL,
  type TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (session, n)
) WITHOUT ROWID;

-- What was said. Rows are pruned by age, so the oldest have the lowest ids.
CREATE TABLE outputs (
  id INTEGER PRIMARY KEY,
  session BIGINT NOT NULL REFERENCES sessions (id),
  seq BIGINT NOT NULL CHECK (seq > 0),
  output_id TEXT NOT NULL,
  input_id TEXT NOT NULL,
  text TEXT NOT NULL,
  data TEXT,
  trace_id TEXT NOT NULL,
  source TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  delivery BIGINT NOT NULL CHECK (delivery IN (0, 1, 2)),
  UNIQUE (session, seq)
);
CREATE INDEX outputs_by_input ON outputs (session, input_id);

-- What is still to be delivered, and when each session's oldest one is to be tried next.
CREATE TABLE deliveries (
  session BIGINT NOT NULL REFERENCES sessions (id),
  seq BIGINT NOT NULL,
  PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE TABLE outbox (
  session BIGINT PRIMARY KEY REFERENCES sessions (id),
  due_at BIGINT NOT NULL,
  attempts BIGINT NOT NULL
);
CREATE INDEX outbox_by_due ON outbox (due_at, session);

-- Calls (`request`) and timers (`due_at`) that an execution waits for; the row is the claim.
CREATE TABLE pending_calls (
  id TEXT PRIMARY KEY,
  session BIGINT NOT NULL REFERENCES sessions (id),
  trace_id TEXT NOT NULL,
  request TEXT,
  due_at BIGINT,
  CHECK ((request IS NULL) <> (due_at IS NULL))
) WITHOUT ROWID;
CREATE INDEX pending_calls_by_due ON pending_calls (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX pending_calls_by_session ON pending_calls (session);

CREATE TABLE dead_letters (
  id TEXT PRIMARY KEY,
  n INTEGER NOT NULL UNIQUE,
  project_id TEXT NOT NULL,
  key TEXT NOT NULL,
  event_id TEXT NOT NULL,
  type TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  value TEXT NOT NULL,
  output_seq BIGINT,
  reason TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('new', 'replayed', 'discarded')),
  created_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX dead_letters_by_project ON dead_letters (project_id, n);
CREATE INDEX dead_letters_new ON dead_letters (n) WHERE state = 'new';

CREATE TABLE attempts (event_id TEXT PRIMARY KEY, count BIGINT NOT NULL) WITHOUT ROWID;

-- Keyed events that have had their effects.
CREATE TABLE claims (id TEXT PRIMARY KEY, created_at BIGINT NOT NULL) WITHOUT ROWID;
CREATE INDEX claims_by_age ON claims (created_at);

CREATE TABLE answers (
  input_id TEXT PRIMARY KEY,
  status BIGINT NOT NULL,
  body TEXT NOT NULL,
  expires_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX answers_by_expiry ON answers (expires_at);

-- The highest offset of each partition that the store has the effects of.
CREATE TABLE log_positions (
  epoch BIGINT NOT NULL,
  log_partition BIGINT NOT NULL,
  log_offset BIGINT NOT NULL,
  PRIMARY KEY (epoch, log_partition)
) WITHOUT ROWID;

CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  n INTEGER NOT NULL UNIQUE,
  project_id TEXT NOT NULL,
  type TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL
    CHECK (state IN ('queued', 'active', 'cancelling', 'done', 'cancelled', 'error')),
  progress BIGINT NOT NULL CHECK (progress BETWEEN 0 AND 100),
  current_step BIGINT NOT NULL,
  total_steps BIGINT NOT NULL,
  fail_reason TEXT NOT NULL,
  data TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  fencing_token BIGINT NOT NULL,
  lease_until BIGINT NOT NULL
) WITHOUT ROWID;
-- One set-up a project that runs or has succeeded.
CREATE UNIQUE INDEX jobs_one_active ON jobs (project_id, type)
  WHERE state IN ('queued', 'active', 'cancelling', 'done');
CREATE INDEX jobs_by_lease ON jobs (lease_until)
  WHERE state IN ('queued', 'active', 'cancelling');

CREATE TABLE organisations (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) WITHOUT ROWID;

CREATE TABLE users (
  id TEXT PRIMARY KEY,
  organisation_id TEXT NOT NULL REFERENCES organisations (id),
  email TEXT NOT NULL,
  email_folded TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  roles TEXT NOT NULL,
  password_hash TEXT,
  created_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX users_by_organisation ON users (organisation_id);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  created_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX api_keys_by_user ON api_keys (user_id);

CREATE TABLE usage (
  organisation_id TEXT NOT NULL,
  counter TEXT NOT NULL,
  month TEXT NOT NULL,
  amount BIGINT NOT NULL,
  PRIMARY KEY (organisation_id, counter, month)
) WITHOUT ROWID;

CREATE TABLE projects (
  id TEXT PRIMARY KEY,
  organisation_id TEXT NOT NULL REFERENCES organisations (id),
  name TEXT NOT NULL,
  proactive TEXT NOT NULL,
  UNIQUE (organisation_id, name)
) WITHOUT ROWID;

CREATE TABLE locales (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  n BIGINT NOT NULL,
  UNIQUE (project_id, name)
) WITHOUT ROWID;

CREATE TABLE members (
  project_id TEXT NOT NULL REFERENCES projects (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  roles TEXT NOT NULL,
  allowed_locales TEXT NOT NULL,
  PRIMARY KEY (project_id, user_id)
) WITHOUT ROWID;
CREATE INDEX members_by_user ON members (user_id);

CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  label TEXT NOT NULL,
  type TEXT NOT NULL,
  script TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  changed_at BIGINT NOT NULL,
  changed_by TEXT NOT NULL,
  UNIQUE (project_id, label)
) WITHOUT ROWID;

-- `fields` is sealed; `source` has `${NAME}` where the secrets stand.
CREATE TABLE connections (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  fields TEXT NOT NULL,
  source TEXT NOT NULL,
  UNIQUE (project_id, name)
) WITHOUT ROWID;

CREATE TABLE lexicons (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  UNIQUE (project_id, name)
) WITHOUT ROWID;
CREATE TABLE lexicon_slots (
  id TEXT PRIMARY KEY,
  lexicon_id TEXT NOT NULL REFERENCES lexicons (id),
  name TEXT NOT NULL,
  n BIGINT NOT NULL,
  UNIQUE (lexicon_id, name)
) WITHOUT ROWID;
CREATE TABLE lexicon_entries (
  id TEXT PRIMARY KEY,
  lexicon_id TEXT NOT NULL REFERENCES lexicons (id),
  main_keyphrase TEXT NOT NULL,
  keyphrases TEXT NOT NULL,
  slots TEXT NOT NULL,
  data TEXT NOT NULL,
  n BIGINT NOT NULL,
  UNIQUE (lexicon_id, main_keyphrase)
) WITHOUT ROWID;

CREATE TABLE knowledge_stores (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  UNIQUE (project_id, name)
) WITHOUT ROWID;
CREATE TABLE knowledge_sources (
  id TEXT PRIMARY KEY,
  store_id TEXT NOT NULL REFERENCES knowledge_stores (id),
  name TEXT NOT NULL,
  n BIGINT NOT NULL,
  UNIQUE (store_id, name)
) WITHOUT ROWID;
CREATE TABLE knowledge_chunks (
  id TEXT PRIMARY KEY,
  source_id TEXT NOT NULL REFERENCES knowledge_sources (id),
  n BIGINT NOT NULL,
  text TEXT NOT NULL,
  data TEXT NOT NULL,
  disabled BIGINT NOT NULL CHECK (disabled IN (0, 1)),
  created_at BIGINT NOT NULL,
  UNIQUE (source_id, n)
) WITHOUT ROWID;

CREATE TABLE flows (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  version BIGINT NOT NULL CHECK (version > 0),
  UNIQUE (project_id, name)
) WITHOUT ROWID;
CREATE TABLE flow_versions (
  flow_id TEXT NOT NULL REFERENCES flows (id),
  version BIGINT NOT NULL,
  definition TEXT NOT NULL,
  PRIMARY KEY (flow_id, version)
) WITHOUT ROWID;

-- `webhook_secret` is sealed; `webhook_secret_source` has `${NAME}` where the secret stands.
CREATE TABLE endpoints (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  flow_id TEXT NOT NULL REFERENCES flows (id),
  url_token TEXT NOT NULL UNIQUE,
  session_expiry_ms BIGINT NOT NULL,
  active_only BIGINT NOT NULL CHECK (active_only IN (0, 1)),
  error_text TEXT NOT NULL,
  webhook_url TEXT NOT NULL,
  webhook_secret TEXT NOT NULL,
  webhook_secret_source TEXT NOT NULL,
  UNIQUE (project_id, name)
) WITHOUT ROWID;
