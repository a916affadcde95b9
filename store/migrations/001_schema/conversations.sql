-- Version 1 of the schema: conversations, and the keys that make a request's effects happen once.
-- Texts of users may hold any character, NUL too. For PostgreSQL see store/sql/postgres.h.

-- Conversations. Child tables refer to `id`. No later session gets the id of a removed one.
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,  -- model::SessionKey::encode()
  project_id TEXT NOT NULL,
  version BIGINT NOT NULL CHECK (version > 0),
  position_epoch BIGINT NOT NULL,
  position_partition BIGINT NOT NULL,
  position_offset BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  last_activity_at BIGINT NOT NULL,
  context TEXT NOT NULL,     -- JSON
  flow_state TEXT NOT NULL,  -- JSON
  execution TEXT,            -- JSON; NULL: none is going on
  last_output_seq BIGINT NOT NULL CHECK (last_output_seq >= 0),
  inbox_size BIGINT NOT NULL CHECK (inbox_size >= 0),
  last_receipt TEXT NOT NULL DEFAULT ''  -- the newest event with a receipt; empty: there is none
);
-- A project's sessions, page by page.
CREATE INDEX sessions_by_project ON sessions (project_id, id);
-- A project's sessions that are pinned to versions of Flows.
CREATE INDEX sessions_busy ON sessions (project_id, id) WHERE execution IS NOT NULL;
-- Sessions whose inbox can go on, at a start.
CREATE INDEX sessions_to_drain ON sessions (id) WHERE inbox_size > 0 AND execution IS NULL;

-- Receipts: the history of each event (store/conversation/receipts.h). A row has those of several events that began one after
-- the other (store/commit/receipt_blocks.h). A session finds its receipts by `last_receipt`.
CREATE TABLE receipts (
  n INTEGER PRIMARY KEY,  -- model::id_number of the first event
  steps TEXT NOT NULL
);
-- Deliveries that worked at the first try. Rows as above. They name no user, and stay when the receipt is erased.
CREATE TABLE plain_deliveries (
  n INTEGER PRIMARY KEY,
  steps TEXT NOT NULL
);
-- The other later steps of a receipt: Turns, calls, other tries of deliveries.
CREATE TABLE later_steps (
  event_id TEXT PRIMARY KEY,
  steps TEXT NOT NULL  -- store/commit/stored_steps.h
) WITHOUT ROWID;
-- Receipts by the numbers of their traces and Idempotency-Keys (store/commit/receipt_keys.h), unless the event lies in its
-- trace's first second.
CREATE TABLE receipt_numbers (
  number BIGINT NOT NULL,
  event_id TEXT NOT NULL,
  PRIMARY KEY (number, event_id)
) WITHOUT ROWID;

-- Profiles: data that Flows keep of a user of conversations, over all sessions.
CREATE TABLE profiles (
  project_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  version BIGINT NOT NULL CHECK (version > 0),
  data TEXT NOT NULL,  -- JSON
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
-- The place of an event, when an operator asks.
CREATE INDEX inbox_by_event ON inbox (event_id);

-- Events that could not be processed and outputs that could not be delivered, with the reason.
CREATE TABLE dead_letters (
  id TEXT PRIMARY KEY,
  n BIGINT NOT NULL UNIQUE,
  project_id TEXT NOT NULL,
  key TEXT NOT NULL,  -- the session's
  event_id TEXT NOT NULL,
  type TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  value TEXT NOT NULL,
  output_seq BIGINT,  -- NULL: an event
  attempts BIGINT NOT NULL,      -- tries of the output that have failed
  reason TEXT NOT NULL,
  flow TEXT NOT NULL,            -- whose Turn failed, or empty: no Flow ran the event
  flow_version BIGINT NOT NULL,  -- 0: as above
  node TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('new', 'replayed', 'discarded')),
  created_at BIGINT NOT NULL
) WITHOUT ROWID;
-- A project's dead letters, page by page.
CREATE INDEX dead_letters_by_project ON dead_letters (project_id, n);
-- A user's dead letters, when the user's data is read or erased.
CREATE INDEX dead_letters_by_key ON dead_letters (key);
-- An event's dead letters, when an operator asks; those of outputs name the input.
CREATE INDEX dead_letters_by_event ON dead_letters (event_id, n);
-- The number of new dead letters. With `state` SQLite counts them without reading their rows.
CREATE INDEX dead_letters_new ON dead_letters (n, state) WHERE state = 'new';

-- First answers of `POST /{URLToken}`, for requests that repeat their key, and messages that have failed.
CREATE TABLE answers (
  input_id TEXT PRIMARY KEY,
  session_key TEXT NOT NULL,
  body TEXT,  -- NULL: the message has failed, and its key is free
  expires_at BIGINT NOT NULL
) WITHOUT ROWID;
-- A user's answers, when the user's data is erased.
CREATE INDEX answers_by_session ON answers (session_key);
-- Answers that have expired.
CREATE INDEX answers_by_expiry ON answers (expires_at);

-- Messages that are cut: their outputs with a number above `behind` are deliveries. Past its deadline a message is cut without
-- a row.
CREATE TABLE cuts (
  input_id TEXT PRIMARY KEY,
  behind BIGINT NOT NULL,
  created_at BIGINT NOT NULL  -- by the clock of timers
) WITHOUT ROWID;
-- Cuts that are older than any deadline.
CREATE INDEX cuts_by_age ON cuts (created_at);

-- Keyed events that have had their effects.
CREATE TABLE claims (id TEXT PRIMARY KEY, created_at BIGINT NOT NULL) WITHOUT ROWID;
-- Claims that are older than the retention.
CREATE INDEX claims_by_age ON claims (created_at);

-- Idempotency-Keys of clients and the events that they stand for, if the log keeps no keys itself.
-- A row is written before its record is appended. The position is NULL until the log has answered.
CREATE TABLE append_keys (
  scope TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  session_key TEXT NOT NULL,  -- empty: the request is for no session
  event_id TEXT NOT NULL,
  epoch BIGINT,
  log_partition BIGINT,
  log_offset BIGINT,
  uses BIGINT NOT NULL DEFAULT 1,  -- requests that use the key; a lone one that fails frees it
  created_at BIGINT NOT NULL,
  PRIMARY KEY (scope, idempotency_key)
) WITHOUT ROWID;
-- A user's keys, when the user's data is erased.
CREATE INDEX append_keys_by_session ON append_keys (session_key);
-- Keys that have expired.
CREATE INDEX append_keys_by_age ON append_keys (created_at);

-- First 2xx answers of keyed requests that change the store alone, written in the transaction of the change.
CREATE TABLE keyed_answers (
  scope TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  session_key TEXT NOT NULL,  -- empty: the request is for no session
  status BIGINT NOT NULL,
  content_type TEXT NOT NULL,
  body TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (scope, idempotency_key)
) WITHOUT ROWID;
-- A user's answers, when the user's data is erased.
CREATE INDEX keyed_answers_by_session ON keyed_answers (session_key);
-- Answers that have expired.
CREATE INDEX keyed_answers_by_expiry ON keyed_answers (expires_at);
