-- Version 1 of the schema: accounts. Times are milliseconds since the Unix epoch in UTC. Ids are 24 characters of
-- [a-z0-9]. JSON is text.

-- Tenants. No tenant sees data of another.
CREATE TABLE organisations (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) WITHOUT ROWID;

-- E-mail domains that belong to an organisation, in lower case. Only this organisation can add users with such addresses.
CREATE TABLE organisation_domains (
  domain TEXT PRIMARY KEY,
  organisation_id TEXT NOT NULL REFERENCES organisations (id)
) WITHOUT ROWID;
-- An organisation's domains.
CREATE INDEX organisation_domains_by_organisation ON organisation_domains (organisation_id);

-- Users of the API and the console.
CREATE TABLE users (
  id TEXT PRIMARY KEY,
  organisation_id TEXT NOT NULL REFERENCES organisations (id),
  email TEXT NOT NULL,
  email_folded TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  roles TEXT NOT NULL,   -- a JSON array
  password_hash TEXT,    -- argon2id; NULL: no sign-in by password
  created_at BIGINT NOT NULL
) WITHOUT ROWID;
-- An organisation's users.
CREATE INDEX users_by_organisation ON users (organisation_id);

-- The addresses from which a user has signed in by password. Guesses from other addresses do not lock the user out there.
CREATE TABLE sign_ins (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  address TEXT NOT NULL,  -- a keyed hash
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, address)
) WITHOUT ROWID;

-- API keys of users. A key's secret is random and is kept as a hash.
CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  created_at BIGINT NOT NULL
) WITHOUT ROWID;
-- A user's keys.
CREATE INDEX api_keys_by_user ON api_keys (user_id);

-- Management tokens: users send them in place of their passwords. A token's secret is random and is kept as a hash.
CREATE TABLE management_tokens (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  scopes TEXT NOT NULL,  -- a JSON array
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
) WITHOUT ROWID;
-- A user's tokens.
CREATE INDEX management_tokens_by_user ON management_tokens (user_id);

-- OAuth 2.0 clients. Secrets of clients, codes and tokens have 256 random bits and are kept as hashes.
CREATE TABLE oauth_clients (
  id TEXT PRIMARY KEY,
  organisation_id TEXT NOT NULL REFERENCES organisations (id),
  name TEXT NOT NULL,
  secret_hash TEXT,  -- NULL: a public client
  redirect_uris TEXT NOT NULL,  -- a JSON array
  password_grant BIGINT NOT NULL CHECK (password_grant IN (0, 1)),
  created_at BIGINT NOT NULL
) WITHOUT ROWID;
-- An organisation's clients.
CREATE INDEX oauth_clients_by_organisation ON oauth_clients (organisation_id);

-- One sign-in of a user at a client: the family of all its tokens. No token outlives its grant.
CREATE TABLE oauth_grants (
  id TEXT PRIMARY KEY,
  client_id TEXT NOT NULL REFERENCES oauth_clients (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
) WITHOUT ROWID;
-- A client's grants, when it is removed.
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);
-- A user's grants, when the user is removed or signed out.
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id);
-- Grants that have expired.
CREATE INDEX oauth_grants_by_expiry ON oauth_grants (expires_at);

-- Access and refresh tokens. A used refresh token stays: its second use tells of a theft.
CREATE TABLE oauth_tokens (
  hash TEXT PRIMARY KEY,
  grant_id TEXT NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
  type TEXT NOT NULL CHECK (type IN ('access', 'refresh')),
  used BIGINT NOT NULL CHECK (used IN (0, 1)),
  expires_at BIGINT NOT NULL
) WITHOUT ROWID;
-- A grant's tokens, when it ends.
CREATE INDEX oauth_tokens_by_grant ON oauth_tokens (grant_id);
-- Tokens that have expired.
CREATE INDEX oauth_tokens_by_expiry ON oauth_tokens (expires_at);

-- Authorization codes. An exchanged code stays as long as its grant: its second use tells of a theft.
CREATE TABLE oauth_codes (
  hash TEXT PRIMARY KEY,
  client_id TEXT NOT NULL REFERENCES oauth_clients (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  redirect_uri TEXT NOT NULL,
  redirect_uri_sent BIGINT NOT NULL CHECK (redirect_uri_sent IN (0, 1)),
  challenge TEXT,  -- PKCE's
  grant_id TEXT REFERENCES oauth_grants (id) ON DELETE CASCADE,  -- NULL: not exchanged yet
  expires_at BIGINT NOT NULL
) WITHOUT ROWID;
-- A client's codes, when it is removed.
CREATE INDEX oauth_codes_by_client ON oauth_codes (client_id);
-- A user's codes, when the user is removed.
CREATE INDEX oauth_codes_by_user ON oauth_codes (user_id);
-- A grant's code, when the grant ends.
CREATE INDEX oauth_codes_by_grant ON oauth_codes (grant_id);
-- Codes that have expired.
CREATE INDEX oauth_codes_by_expiry ON oauth_codes (expires_at);

-- An organisation's usage in a month, by counter. Commits count in their own shard.
CREATE TABLE usage (
  organisation_id TEXT NOT NULL,
  counter TEXT NOT NULL,
  month TEXT NOT NULL,
  amount BIGINT NOT NULL,
  PRIMARY KEY (organisation_id, counter, month)
) WITHOUT ROWID;

-- The audit trail: which actor did which operation. An entry is written before its request begins. Triggers refuse edits.
CREATE TABLE audit (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  made_at BIGINT NOT NULL,
  organisation_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  actor TEXT NOT NULL,
  credential TEXT NOT NULL,
  address TEXT NOT NULL,
  operation TEXT NOT NULL,
  route TEXT NOT NULL,
  object TEXT NOT NULL,
  subject_user TEXT NOT NULL,     -- an erasure of the user empties this one and the next
  subject_session TEXT NOT NULL,
  status BIGINT,                  -- of HTTP; NULL: there is no answer yet
  trace_id TEXT NOT NULL
);
-- Entries that are older than the retention.
CREATE INDEX audit_by_time ON audit (made_at);
-- An organisation's entries, page by page.
CREATE INDEX audit_by_organisation ON audit (organisation_id, n);
-- Entries about a user, when the user's data is erased.
CREATE INDEX audit_by_subject ON audit (organisation_id, subject_user) WHERE subject_user <> '';
