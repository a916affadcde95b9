-- Lists that are read page by page, and answers that repeated keys get again. Additions only.

-- Where a list is to be read on: the sort keys of the item that a page began or ended with. `side`
-- says which items come: beyond them or before them, with or without the item itself.
CREATE TABLE cursors (
  id TEXT PRIMARY KEY,
  scope TEXT NOT NULL,
  query TEXT NOT NULL,
  side TEXT NOT NULL CHECK (side IN ('after', 'from', 'before', 'upto')),
  position TEXT NOT NULL,
  expires_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX cursors_by_expiry ON cursors (expires_at);

-- By `_id`; by `order` there is knowledge_chunks' own UNIQUE (source_id, n).
CREATE INDEX lexicon_entries_by_id ON lexicon_entries (lexicon_id, id);
CREATE INDEX knowledge_chunks_by_id ON knowledge_chunks (source_id, id);
CREATE INDEX jobs_by_project ON jobs (project_id, n);

-- Totals are kept, not counted: a page must not cost what the whole list does.
ALTER TABLE lexicons ADD COLUMN entry_count BIGINT NOT NULL DEFAULT 0;
UPDATE lexicons SET entry_count =
  (SELECT COUNT(*) FROM lexicon_entries e WHERE e.lexicon_id = lexicons.id);
CREATE TRIGGER lexicon_entry_added AFTER INSERT ON lexicon_entries BEGIN
  UPDATE lexicons SET entry_count = entry_count + 1 WHERE id = NEW.lexicon_id;
END;
CREATE TRIGGER lexicon_entry_removed AFTER DELETE ON lexicon_entries BEGIN
  UPDATE lexicons SET entry_count = entry_count - 1 WHERE id = OLD.lexicon_id;
END;

ALTER TABLE knowledge_sources ADD COLUMN chunk_count BIGINT NOT NULL DEFAULT 0;
UPDATE knowledge_sources SET chunk_count =
  (SELECT COUNT(*) FROM knowledge_chunks k WHERE k.source_id = knowledge_sources.id);
CREATE TRIGGER knowledge_chunk_added AFTER INSERT ON knowledge_chunks BEGIN
  UPDATE knowledge_sources SET chunk_count = chunk_count + 1 WHERE id = NEW.source_id;
END;
CREATE TRIGGER knowledge_chunk_removed AFTER DELETE ON knowledge_chunks BEGIN
  UPDATE knowledge_sources SET chunk_count = chunk_count - 1 WHERE id = OLD.source_id;
END;

-- First 2xx answers of keyed requests that change the store alone: kept in the transaction of the
-- change, until they expire.
CREATE TABLE keyed_answers (
  scope TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  status BIGINT NOT NULL,
  content_type TEXT NOT NULL,
  body TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (scope, idempotency_key)
) WITHOUT ROWID;
CREATE INDEX keyed_answers_by_expiry ON keyed_answers (expires_at);
