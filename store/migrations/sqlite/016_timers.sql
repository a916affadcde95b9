-- Questions that want an answer in time, and follow-up that is switched off. Additions only.

-- 1: the timer of a question, whose session is not busy; 0: an execution waits for it.
ALTER TABLE pending_calls ADD COLUMN time_out BIGINT NOT NULL DEFAULT 0 CHECK (time_out IN (0, 1));

-- 1: the project's journey asked for it; 0: a Node did. The journey's are counted from 0 in their ids.
ALTER TABLE follow_ups ADD COLUMN of_journey BIGINT NOT NULL DEFAULT 0
  CHECK (of_journey IN (0, 1));
UPDATE follow_ups SET of_journey = 1 WHERE id LIKE '%-f0' OR id LIKE '%-f0q%';
