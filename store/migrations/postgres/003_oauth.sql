-- OAuth 2.0. Secrets of clients, codes and tokens have 256 random bits and are kept as hashes only.

CREATE TABLE oauth_clients (
  id plain_text PRIMARY KEY,
  organisation_id plain_text NOT NULL REFERENCES organisations (id),
  name plain_text NOT NULL,
  secret_hash plain_text,
  redirect_uris plain_text NOT NULL,
  password_grant BIGINT NOT NULL CHECK (password_grant IN (0, 1)),
  created_at BIGINT NOT NULL
);
CREATE INDEX oauth_clients_by_organisation ON oauth_clients (organisation_id);

-- One sign-in of a user at a client: the family of all tokens that came of it. No token outlives it.
CREATE TABLE oauth_grants (
  id plain_text PRIMARY KEY,
  client_id plain_text NOT NULL REFERENCES oauth_clients (id),
  user_id plain_text NOT NULL REFERENCES users (id),
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id);
CREATE INDEX oauth_grants_by_expiry ON oauth_grants (expires_at);

-- Refresh tokens stay when they were used: their next use tells of a theft.
CREATE TABLE oauth_tokens (
  hash plain_text PRIMARY KEY,
  grant_id plain_text NOT NULL REFERENCES oauth_grants (id),
  type plain_text NOT NULL CHECK (type IN ('access', 'refresh')),
  used BIGINT NOT NULL CHECK (used IN (0, 1)),
  expires_at BIGINT NOT NULL
);
CREATE INDEX oauth_tokens_by_grant ON oauth_tokens (grant_id);
CREATE INDEX oauth_tokens_by_expiry ON oauth_tokens (expires_at);

-- `grant_id` is what the code was exchanged for; the code stays as long as that, for the same reason.
CREATE TABLE oauth_codes (
  hash plain_text PRIMARY KEY,
  client_id plain_text NOT NULL REFERENCES oauth_clients (id),
  user_id plain_text NOT NULL REFERENCES users (id),
  redirect_uri plain_text NOT NULL,
  redirect_uri_sent BIGINT NOT NULL CHECK (redirect_uri_sent IN (0, 1)),
  challenge plain_text,
  grant_id plain_text REFERENCES oauth_grants (id),
  expires_at BIGINT NOT NULL
);
CREATE INDEX oauth_codes_by_client ON oauth_codes (client_id);
CREATE INDEX oauth_codes_by_user ON oauth_codes (user_id);
CREATE INDEX oauth_codes_by_grant ON oauth_codes (grant_id);
CREATE INDEX oauth_codes_by_expiry ON oauth_codes (expires_at);

-- What ends: a new token concerns nobody who has a copy. Expired ones are looked for with each new one, mostly in vain.
CREATE FUNCTION tell_of_end() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT 1 FROM gone) THEN PERFORM pg_notify('conversed', TG_ARGV[0]); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER oauth_clients_changed AFTER DELETE ON oauth_clients REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_end('people');
CREATE TRIGGER oauth_grants_changed AFTER DELETE ON oauth_grants REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_end('people');
CREATE TRIGGER oauth_tokens_changed AFTER DELETE ON oauth_tokens REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_end('people');
