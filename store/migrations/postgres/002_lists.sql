-- Lists that are read page by page, and answers that repeated keys get again. Additions only.

-- Where a list is to be read on: the sort keys of the item that a page began or ended with. `side`
-- says which items come: beyond them or before them, with or without the item itself.
CREATE TABLE cursors (
  id plain_text PRIMARY KEY,
  scope plain_text NOT NULL,
  query plain_text NOT NULL,
  side plain_text NOT NULL CHECK (side IN ('after', 'from', 'before', 'upto')),
  position plain_text NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX cursors_by_expiry ON cursors (expires_at);

-- By `_id`; by `order` there is knowledge_chunks' own UNIQUE (source_id, n).
CREATE INDEX lexicon_entries_by_id ON lexicon_entries (lexicon_id, id);
CREATE INDEX knowledge_chunks_by_id ON knowledge_chunks (source_id, id);
CREATE INDEX jobs_by_project ON jobs (project_id, n);

-- Totals are kept, not counted: a page must not cost what the whole list does.
ALTER TABLE lexicons ADD COLUMN entry_count BIGINT NOT NULL DEFAULT 0;
UPDATE lexicons SET entry_count =
  (SELECT COUNT(*) FROM lexicon_entries e WHERE e.lexicon_id = lexicons.id);
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

ALTER TABLE knowledge_sources ADD COLUMN chunk_count BIGINT NOT NULL DEFAULT 0;
UPDATE knowledge_sources SET chunk_count =
  (SELECT COUNT(*) FROM knowledge_chunks k WHERE k.source_id = knowledge_sources.id);
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

-- First 2xx answers of keyed requests that change the store alone: kept in the transaction of the
-- change, until they expire.
CREATE TABLE keyed_answers (
  scope plain_text NOT NULL,
  idempotency_key plain_text NOT NULL,
  body_hash plain_text NOT NULL,
  status BIGINT NOT NULL,
  content_type plain_text NOT NULL,
  body plain_text NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (scope, idempotency_key)
);
CREATE INDEX keyed_answers_by_expiry ON keyed_answers (expires_at);
