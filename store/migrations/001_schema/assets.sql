-- Version 1 of the schema: projects and their assets.

-- Projects.
CREATE TABLE projects (
  id TEXT PRIMARY KEY,
  organisation_id TEXT NOT NULL REFERENCES organisations (id),
  name TEXT NOT NULL,
  proactive TEXT NOT NULL,  -- the bundle's `proactive` as JSON
  UNIQUE (organisation_id, name)
) WITHOUT ROWID;

-- Locales of a project, in the order of `n`.
CREATE TABLE locales (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  n BIGINT NOT NULL,
  UNIQUE (project_id, name)
) WITHOUT ROWID;

-- Users' roles in a project.
CREATE TABLE members (
  project_id TEXT NOT NULL REFERENCES projects (id),
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  roles TEXT NOT NULL,            -- a JSON array
  allowed_locales TEXT NOT NULL,  -- a JSON array
  PRIMARY KEY (project_id, user_id)
) WITHOUT ROWID;
-- A user's projects.
CREATE INDEX members_by_user ON members (user_id);

-- Tokens: texts with a script that Flows insert by their label.
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

-- Connections: secrets that calls are made with. `fields` and `source` are sealed.
CREATE TABLE connections (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  fields TEXT NOT NULL,
  source TEXT NOT NULL,  -- the bundle's fields, with `${NAME}` where secrets stand
  hosts TEXT NOT NULL,   -- a JSON list; empty: any host
  UNIQUE (project_id, name)
) WITHOUT ROWID;

-- Lexicons. Triggers keep `entry_count`, so that a page costs less than the whole list.
CREATE TABLE lexicons (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  entry_count BIGINT NOT NULL DEFAULT 0,
  version BIGINT NOT NULL DEFAULT 1,  -- of its entries and slots: each import makes a new one
  UNIQUE (project_id, name)
) WITHOUT ROWID;

-- Slots of a lexicon, in the order of `n`.
CREATE TABLE lexicon_slots (
  id TEXT PRIMARY KEY,
  lexicon_id TEXT NOT NULL REFERENCES lexicons (id),
  name TEXT NOT NULL,
  n BIGINT NOT NULL,
  UNIQUE (lexicon_id, name)
) WITHOUT ROWID;

-- Entries of a lexicon, in the order of `n`.
CREATE TABLE lexicon_entries (
  id TEXT PRIMARY KEY,
  lexicon_id TEXT NOT NULL REFERENCES lexicons (id),
  main_keyphrase TEXT NOT NULL,
  keyphrases TEXT NOT NULL,  -- a JSON array
  slots TEXT NOT NULL,       -- a JSON array
  data TEXT NOT NULL,        -- JSON
  n BIGINT NOT NULL,
  UNIQUE (lexicon_id, main_keyphrase)
) WITHOUT ROWID;
-- Pages of a lexicon by `_id`.
CREATE INDEX lexicon_entries_by_id ON lexicon_entries (lexicon_id, id);

-- Flows. `version` is in effect: sessions run it with their next input, unless they are in a ramp. A version with a higher
-- number was imported with `hold`, or has ended its ramp.
CREATE TABLE flows (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  version BIGINT NOT NULL CHECK (version > 0),
  UNIQUE (project_id, name)
) WITHOUT ROWID;

-- Versions of Flows. A version never changes.
CREATE TABLE flow_versions (
  flow_id TEXT NOT NULL REFERENCES flows (id),
  version BIGINT NOT NULL,
  definition TEXT NOT NULL,  -- JSON
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,  -- a user's id; empty: no user of the API
  restored_from BIGINT,      -- the version that a rollback made this one equal to
  took_effect_at BIGINT,     -- NULL: it was never the version of all sessions
  PRIMARY KEY (flow_id, version)
) WITHOUT ROWID;

-- Ramps of Flows: a share of the sessions runs another version than the Flow's own. The running ramp of a Flow, or its last
-- one. Failures are Turns that became dead letters or met a failed call.
CREATE TABLE flow_ramps (
  flow_id TEXT PRIMARY KEY REFERENCES flows (id),
  id TEXT NOT NULL,                -- of the ramp; the next ramp of the Flow has another
  version BIGINT NOT NULL,
  stable_version BIGINT NOT NULL,  -- the Flow's own, when the ramp began
  share BIGINT NOT NULL CHECK (share BETWEEN 1 AND 100),             -- of the sessions, in percent
  max_errors BIGINT NOT NULL CHECK (max_errors BETWEEN 0 AND 100),   -- failures of 100 Turns beyond which it is taken back
  began_at BIGINT NOT NULL,
  began_by TEXT NOT NULL,          -- a user's id
  ended_at BIGINT,                 -- NULL: it runs
  ending TEXT CHECK (ending IN ('finished', 'stopped', 'errors')),
  turns BIGINT NOT NULL,           -- of the version, while the ramp ran; 0 until it ends
  failures BIGINT NOT NULL,
  stable_turns BIGINT NOT NULL,    -- of the stable version
  stable_failures BIGINT NOT NULL
) WITHOUT ROWID;

-- The counts of running ramps, written with the Turns of this shard's sessions. The end of a ramp stores their sum over the
-- shards in flow_ramps.
CREATE TABLE ramp_counts (
  ramp_id TEXT PRIMARY KEY,
  turns BIGINT NOT NULL,
  failures BIGINT NOT NULL,
  stable_turns BIGINT NOT NULL,
  stable_failures BIGINT NOT NULL
) WITHOUT ROWID;

-- Endpoints. The secrets and `webhook_secret_source` are sealed. The sources hold `${NAME}` where a bundle does.
CREATE TABLE endpoints (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  flow_id TEXT NOT NULL REFERENCES flows (id),
  follow_up_flow_id TEXT REFERENCES flows (id),  -- runs for silent users; NULL: none does
  error_flow_id TEXT REFERENCES flows (id),      -- runs when a Turn fails; NULL: none does
  url_token TEXT NOT NULL UNIQUE,
  session_expiry_ms BIGINT NOT NULL,
  active_only BIGINT NOT NULL CHECK (active_only IN (0, 1)),
  error_text TEXT NOT NULL,
  webhook_url TEXT NOT NULL,         -- empty: there is no webhook
  webhook_url_source TEXT NOT NULL,  -- empty: no `${NAME}` is in it
  webhook_secret TEXT NOT NULL,
  webhook_secret_source TEXT NOT NULL,
  webhook_secret_changed_at BIGINT NOT NULL,
  previous_webhook_secret TEXT NOT NULL,  -- signs beside the other one for a while after the change
  UNIQUE (project_id, name)
) WITHOUT ROWID;
-- Endpoints that follow up by a Flow, when the Flow is removed.
CREATE INDEX endpoints_by_follow_up_flow ON endpoints (follow_up_flow_id) WHERE follow_up_flow_id IS NOT NULL;

-- Endpoints that were deleted. Their sessions may still be there, and a user's are found by the Endpoint's id.
CREATE TABLE removed_endpoints (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL  -- of projects or removed_projects
) WITHOUT ROWID;
-- The deleted Endpoints of a project, when data of its users is read or erased.
CREATE INDEX removed_endpoints_by_project ON removed_endpoints (project_id);

-- Projects that were deleted. The rest of the daemon does not know them. The housekeeper erases their conversations.
CREATE TABLE removed_projects (
  id TEXT PRIMARY KEY,
  removed_at BIGINT NOT NULL
) WITHOUT ROWID;

-- Tenants of proactive follow-up, one a project. `secret` is sealed.
CREATE TABLE proactive_tenants (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL UNIQUE REFERENCES projects (id),
  secret TEXT NOT NULL,
  follow_ups_per_month BIGINT NOT NULL CHECK (follow_ups_per_month >= 0),
  external_id TEXT NOT NULL,  -- the provisioning service's name for it; empty: there is no such service
  created_at BIGINT NOT NULL
) WITHOUT ROWID;

-- Journeys, one a project. Users are followed up while the journey is active.
CREATE TABLE journeys (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL UNIQUE REFERENCES projects (id),
  definition TEXT NOT NULL,  -- the bundle's `journey` as JSON, checked, with its defaults filled in
  active BIGINT NOT NULL CHECK (active IN (0, 1)),
  created_at BIGINT NOT NULL
) WITHOUT ROWID;

-- Places in lists that clients read page by page.
CREATE TABLE cursors (
  id TEXT PRIMARY KEY,
  scope TEXT NOT NULL,
  query TEXT NOT NULL,
  side TEXT NOT NULL CHECK (side IN ('after', 'before')),  -- of the place, in the order of the list
  position TEXT NOT NULL,  -- sort keys of the item that the page began or ended with; [] at an end of the list
  numbering BIGINT NOT NULL,  -- of the list, when the page was read; 0 if the position has no number of it
  expires_at BIGINT NOT NULL
) WITHOUT ROWID;
-- Cursors that have expired.
CREATE INDEX cursors_by_expiry ON cursors (expires_at);
