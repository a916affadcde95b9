-- Secrets that rotate, and the data of one user. Additions only.

-- The webhook's secret before this one, sealed, which signs beside it for a while after the change.
ALTER TABLE endpoints ADD COLUMN previous_webhook_secret plain_text NOT NULL DEFAULT '';
ALTER TABLE endpoints ADD COLUMN webhook_secret_changed_at BIGINT NOT NULL DEFAULT 0;

-- Whose answer it is (the session's key); nobody's in rows of before, which expire in a day.
ALTER TABLE answers ADD COLUMN session_key plain_text NOT NULL DEFAULT '';
CREATE INDEX answers_by_session ON answers (session_key);
CREATE INDEX dead_letters_by_key ON dead_letters (key);
CREATE INDEX schedules_by_key ON schedules (key);
