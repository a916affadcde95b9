-- Version 1 of the schema: knowledge and its full-text index.

-- Stores of knowledge.
CREATE TABLE knowledge_stores (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  UNIQUE (project_id, name)
) WITHOUT ROWID;

-- Sources of a store, in the order of `n`. Triggers keep `chunk_count`, so that a page costs less than the whole list.
-- `last_place` is the highest place that a chunk of the source ever had. `numbering` rises when all chunks get new places.
CREATE TABLE knowledge_sources (
  id TEXT PRIMARY KEY,
  store_id TEXT NOT NULL REFERENCES knowledge_stores (id),
  name TEXT NOT NULL,
  n BIGINT NOT NULL,
  chunk_count BIGINT NOT NULL DEFAULT 0,
  last_place BIGINT NOT NULL DEFAULT 0,
  numbering BIGINT NOT NULL DEFAULT 1,
  UNIQUE (store_id, name)
) WITHOUT ROWID;

-- Chunks of a source, in the order of `place`. A chunk keeps its place while others are added and removed, so cursors stay
-- where they are. `n` is its number from 0 on.
CREATE TABLE knowledge_chunks (
  id TEXT PRIMARY KEY,
  source_id TEXT NOT NULL REFERENCES knowledge_sources (id),
  n BIGINT NOT NULL,
  place BIGINT NOT NULL,
  text TEXT NOT NULL,
  data TEXT NOT NULL,  -- JSON
  disabled BIGINT NOT NULL CHECK (disabled IN (0, 1)),
  created_at BIGINT NOT NULL
) WITHOUT ROWID;
-- Pages of a source by `order` and by `_id`.
CREATE UNIQUE INDEX knowledge_chunks_by_place ON knowledge_chunks (source_id, place);
CREATE INDEX knowledge_chunks_by_id ON knowledge_chunks (source_id, id);

-- A store's part of the index. Ranks depend on these counts, so the knowledge of other projects changes no rank.
-- Triggers keep the counts.
CREATE TABLE knowledge_vocabularies (
  n INTEGER PRIMARY KEY,
  store_id TEXT NOT NULL UNIQUE REFERENCES knowledge_stores (id) ON DELETE CASCADE,
  chunk_count BIGINT NOT NULL DEFAULT 0,
  term_count BIGINT NOT NULL DEFAULT 0
);

-- Chunks that are not in the index yet. Triggers put them here. The import's transaction, or the next start, indexes them.
CREATE TABLE knowledge_unindexed (chunk_id TEXT PRIMARY KEY) WITHOUT ROWID;
