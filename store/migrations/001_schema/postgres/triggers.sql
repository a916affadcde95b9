-- Version 1 of the schema: triggers in PostgreSQL, and the index that only several daemons need.

-- Sessions with an inbox, when a partition comes to another daemon.
CREATE INDEX sessions_with_inbox ON sessions (id) WHERE inbox_size > 0;

-- entry_count and chunk_count follow the rows that they count.
CREATE FUNCTION lexicon_entry_added() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
  UPDATE lexicons p SET entry_count = p.entry_count + c.count
    FROM (SELECT lexicon_id, COUNT(*) FROM changed GROUP BY lexicon_id) c WHERE p.id = c.lexicon_id;
  RETURN NULL;
END $$;
CREATE TRIGGER lexicon_entry_added AFTER INSERT ON lexicon_entries REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION lexicon_entry_added();
CREATE FUNCTION lexicon_entry_removed() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
  UPDATE lexicons p SET entry_count = p.entry_count - c.count
    FROM (SELECT lexicon_id, COUNT(*) FROM changed GROUP BY lexicon_id) c WHERE p.id = c.lexicon_id;
  RETURN NULL;
END $$;
CREATE TRIGGER lexicon_entry_removed AFTER DELETE ON lexicon_entries REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION lexicon_entry_removed();
CREATE FUNCTION knowledge_chunk_added() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
  UPDATE knowledge_sources p SET chunk_count = p.chunk_count + c.count
    FROM (SELECT source_id, COUNT(*) FROM changed GROUP BY source_id) c WHERE p.id = c.source_id;
  RETURN NULL;
END $$;
CREATE TRIGGER knowledge_chunk_added AFTER INSERT ON knowledge_chunks REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION knowledge_chunk_added();
CREATE FUNCTION knowledge_chunk_removed() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
  UPDATE knowledge_sources p SET chunk_count = p.chunk_count - c.count
    FROM (SELECT source_id, COUNT(*) FROM changed GROUP BY source_id) c WHERE p.id = c.source_id;
  RETURN NULL;
END $$;
CREATE TRIGGER knowledge_chunk_removed AFTER DELETE ON knowledge_chunks REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION knowledge_chunk_removed();

-- Only an entry's status is written later, once. An erasure of the user empties the subject.
CREATE FUNCTION refuse_audit_edit() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'the audit trail is not edited';
END $$;
CREATE TRIGGER audit_is_kept BEFORE UPDATE OF id, made_at, organisation_id, user_id, actor, credential, address,
  operation, route, object, trace_id ON audit
  FOR EACH ROW EXECUTE FUNCTION refuse_audit_edit();
CREATE TRIGGER audit_status_is_set_once BEFORE UPDATE OF status ON audit
  FOR EACH ROW WHEN (OLD.status IS NOT NULL) EXECUTE FUNCTION refuse_audit_edit();
CREATE TRIGGER audit_subject_is_only_erased BEFORE UPDATE OF subject_user, subject_session ON audit
  FOR EACH ROW WHEN (NEW.subject_user <> '' OR NEW.subject_session <> '')
  EXECUTE FUNCTION refuse_audit_edit();

-- Daemons keep copies of these tables and listen. A transaction sends each notification once.
CREATE FUNCTION tell_of_change() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_notify('conversed', TG_ARGV[0]);
  RETURN NULL;
END $$;
CREATE TRIGGER organisations_changed AFTER INSERT OR UPDATE OR DELETE ON organisations
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('people');
CREATE TRIGGER users_changed AFTER INSERT OR UPDATE OR DELETE ON users
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('people');
CREATE TRIGGER api_keys_changed AFTER INSERT OR UPDATE OR DELETE ON api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('people');
CREATE TRIGGER management_tokens_changed AFTER INSERT OR UPDATE OR DELETE ON management_tokens
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('people');
CREATE TRIGGER members_changed AFTER INSERT OR UPDATE OR DELETE ON members
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('people');
CREATE TRIGGER projects_changed AFTER INSERT OR UPDATE OR DELETE ON projects
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER locales_changed AFTER INSERT OR UPDATE OR DELETE ON locales
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER tokens_changed AFTER INSERT OR UPDATE OR DELETE ON tokens
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER connections_changed AFTER INSERT OR UPDATE OR DELETE ON connections
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER knowledge_stores_changed AFTER INSERT OR UPDATE OR DELETE ON knowledge_stores
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER knowledge_sources_changed AFTER INSERT OR UPDATE OR DELETE ON knowledge_sources
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER knowledge_chunks_changed AFTER INSERT OR UPDATE OR DELETE ON knowledge_chunks
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER flows_changed AFTER INSERT OR UPDATE OR DELETE ON flows
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER flow_versions_changed AFTER INSERT OR UPDATE OR DELETE ON flow_versions
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER flow_ramps_changed AFTER INSERT OR UPDATE OR DELETE ON flow_ramps
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER endpoints_changed AFTER INSERT OR UPDATE OR DELETE ON endpoints
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER lexicons_changed AFTER INSERT OR UPDATE OR DELETE ON lexicons
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER lexicon_slots_changed AFTER INSERT OR UPDATE OR DELETE ON lexicon_slots
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER lexicon_entries_changed AFTER INSERT OR UPDATE OR DELETE ON lexicon_entries
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER journeys_changed AFTER INSERT OR UPDATE OR DELETE ON journeys
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER proactive_tenants_changed AFTER INSERT OR UPDATE OR DELETE ON proactive_tenants
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');

-- Only the end of a grant concerns the copies. Removals of expired rows are frequent and mostly find none.
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
