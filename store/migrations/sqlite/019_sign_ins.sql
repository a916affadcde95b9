-- From where users have signed in by password: guesses from elsewhere do not lock them out there.
-- Additions only.
CREATE TABLE sign_ins (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  address TEXT NOT NULL, -- keyed hash
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, address)
) WITHOUT ROWID;
