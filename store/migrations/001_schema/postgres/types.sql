-- Version 1 of the schema: the types and functions that PostgreSQL lacks.

-- Texts are compared by code points, independent of the database's locale.
CREATE DOMAIN plain_text AS TEXT COLLATE "C";

-- The elements of a JSON array, as SQLite has them.
CREATE FUNCTION json_each(list TEXT) RETURNS TABLE (value TEXT) LANGUAGE SQL IMMUTABLE
  AS $$ SELECT json_array_elements_text(list::JSON) $$;

-- Equals Unicode case folding. `upper` expands letters such as "ß", `lower` then gives each letter one form.
-- Only the sigma at the end of a word has two.
CREATE FUNCTION folded(content TEXT) RETURNS TEXT LANGUAGE SQL IMMUTABLE
  AS $$ SELECT replace(lower(upper(content COLLATE "und-x-icu") COLLATE "und-x-icu"), 'ς', 'σ') $$;
CREATE FUNCTION folded_contains(content TEXT, needle TEXT) RETURNS BOOLEAN LANGUAGE SQL IMMUTABLE
  AS $$ SELECT position(folded(needle) IN folded(content)) > 0 $$;
