-- Version 1 of the schema: triggers in SQLite.

-- entry_count and chunk_count follow the rows that they count.
CREATE TRIGGER lexicon_entry_added AFTER INSERT ON lexicon_entries BEGIN
  UPDATE lexicons SET entry_count = entry_count + 1 WHERE id = NEW.lexicon_id;
END;
CREATE TRIGGER lexicon_entry_removed AFTER DELETE ON lexicon_entries BEGIN
  UPDATE lexicons SET entry_count = entry_count - 1 WHERE id = OLD.lexicon_id;
END;
CREATE TRIGGER knowledge_chunk_added AFTER INSERT ON knowledge_chunks BEGIN
  UPDATE knowledge_sources SET chunk_count = chunk_count + 1 WHERE id = NEW.source_id;
END;
CREATE TRIGGER knowledge_chunk_removed AFTER DELETE ON knowledge_chunks BEGIN
  UPDATE knowledge_sources SET chunk_count = chunk_count - 1 WHERE id = OLD.source_id;
END;

-- Only an entry's status is written later, once. An erasure of the user empties the subject.
CREATE TRIGGER audit_is_kept BEFORE UPDATE OF id, made_at, organisation_id, user_id, actor, credential, address,
  operation, route, object, trace_id ON audit
BEGIN SELECT RAISE(ABORT, 'the audit trail is not edited'); END;
CREATE TRIGGER audit_status_is_set_once BEFORE UPDATE OF status ON audit WHEN OLD.status IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'the audit trail is not edited'); END;
CREATE TRIGGER audit_subject_is_only_erased BEFORE UPDATE OF subject_user, subject_session ON audit
WHEN NEW.subject_user <> '' OR NEW.subject_session <> ''
BEGIN SELECT RAISE(ABORT, 'the audit trail is not edited'); END;
