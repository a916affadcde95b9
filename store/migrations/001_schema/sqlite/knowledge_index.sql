-- Version 1 of the schema: full-text search in SQLite, by FTS5.

-- The words of a chunk, folded by the program, each behind its vocabulary's number: `7_returns`.
CREATE TABLE knowledge_terms (
  n INTEGER PRIMARY KEY,
  chunk_id TEXT NOT NULL UNIQUE,
  vocabulary BIGINT NOT NULL,
  term_count BIGINT NOT NULL,
  terms TEXT NOT NULL
);
-- Chunks by a word.
CREATE VIRTUAL TABLE knowledge_index
  USING fts5(terms, content='knowledge_terms', content_rowid='n', tokenize="ascii tokenchars '_'");

-- The index and a vocabulary's counts follow knowledge_terms.
CREATE TRIGGER knowledge_terms_added AFTER INSERT ON knowledge_terms BEGIN
  INSERT INTO knowledge_index (rowid, terms) VALUES (NEW.n, NEW.terms);
  UPDATE knowledge_vocabularies
    SET chunk_count = chunk_count + 1, term_count = term_count + NEW.term_count
    WHERE n = NEW.vocabulary;
END;
CREATE TRIGGER knowledge_terms_removed AFTER DELETE ON knowledge_terms BEGIN
  INSERT INTO knowledge_index (knowledge_index, rowid, terms) VALUES ('delete', OLD.n, OLD.terms);
  UPDATE knowledge_vocabularies
    SET chunk_count = chunk_count - 1, term_count = term_count - OLD.term_count
    WHERE n = OLD.vocabulary;
END;

-- Chunks that are new or changed wait in knowledge_unindexed.
CREATE TRIGGER knowledge_chunk_to_index AFTER INSERT ON knowledge_chunks BEGIN
  INSERT INTO knowledge_unindexed (chunk_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER knowledge_chunk_changed AFTER UPDATE OF text, source_id ON knowledge_chunks
WHEN OLD.text <> NEW.text OR OLD.source_id <> NEW.source_id BEGIN
  DELETE FROM knowledge_terms WHERE chunk_id = OLD.id;
  INSERT INTO knowledge_unindexed (chunk_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER knowledge_chunk_gone AFTER DELETE ON knowledge_chunks BEGIN
  DELETE FROM knowledge_terms WHERE chunk_id = OLD.id;
  DELETE FROM knowledge_unindexed WHERE chunk_id = OLD.id;
END;
