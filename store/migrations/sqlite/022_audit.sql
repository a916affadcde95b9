-- The audit trail: who did what. An entry is written before its request is begun; status 0 has no answer yet.
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
  subject_user TEXT NOT NULL,
  subject_session TEXT NOT NULL,
  status BIGINT NOT NULL,
  trace_id TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit (made_at);
CREATE INDEX audit_by_subject ON audit (organisation_id, subject_user) WHERE subject_user <> '';

CREATE TRIGGER audit_is_kept BEFORE UPDATE OF id, made_at, organisation_id, user_id, actor, credential, address, operation, route, object,
  trace_id ON audit
BEGIN SELECT RAISE(ABORT, 'the audit trail is not edited'); END;
CREATE TRIGGER audit_status_is_set_once BEFORE UPDATE OF status ON audit WHEN OLD.status <> 0
BEGIN SELECT RAISE(ABORT, 'the audit trail is not edited'); END;
-- An erasure of the user takes both out.
CREATE TRIGGER audit_subject_is_only_erased BEFORE UPDATE OF subject_user, subject_session ON audit
WHEN NEW.subject_user <> '' OR NEW.subject_session <> ''
BEGIN SELECT RAISE(ABORT, 'the audit trail is not edited'); END;
