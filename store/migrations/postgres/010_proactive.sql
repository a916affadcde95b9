-- Proactive follow-up: what set-up makes of a project. Additions only.

-- One a project. `secret` is sealed; `external_id` is the provisioning service's name for it, empty
-- without one.
CREATE TABLE proactive_tenants (
  id plain_text PRIMARY KEY,
  project_id plain_text NOT NULL UNIQUE REFERENCES projects (id),
  secret plain_text NOT NULL,
  follow_ups_per_month BIGINT NOT NULL CHECK (follow_ups_per_month >= 0),
  external_id plain_text NOT NULL,
  created_at BIGINT NOT NULL
);

-- `definition` is the checked `journey` of a bundle, with its defaults filled in. Nobody is followed
-- up before it is active.
CREATE TABLE journeys (
  id plain_text PRIMARY KEY,
  project_id plain_text NOT NULL UNIQUE REFERENCES projects (id),
  definition plain_text NOT NULL,
  active BIGINT NOT NULL CHECK (active IN (0, 1)),
  created_at BIGINT NOT NULL
);

-- The Flow that follows the Endpoint's silent users up; NULL: none does.
ALTER TABLE endpoints ADD COLUMN follow_up_flow_id plain_text REFERENCES flows (id);
CREATE INDEX endpoints_by_follow_up_flow ON endpoints (follow_up_flow_id)
  WHERE follow_up_flow_id IS NOT NULL;
CREATE INDEX jobs_over ON jobs (changed_at) WHERE state IN ('cancelled', 'error');

-- Follow-ups that wait for their time; the row is the claim. `value` is text, data and plan as JSON.
CREATE TABLE follow_ups (
  id plain_text PRIMARY KEY,
  session BIGINT NOT NULL REFERENCES sessions (id),
  trace_id plain_text NOT NULL,
  due_at BIGINT NOT NULL,
  value plain_text NOT NULL
);
CREATE INDEX follow_ups_by_due ON follow_ups (due_at, id);
CREATE INDEX follow_ups_by_session ON follow_ups (session);

-- 1: of a follow-up, and not begun to be sent; the user's next message takes it back.
ALTER TABLE deliveries ADD COLUMN withdrawable BIGINT NOT NULL DEFAULT 0
  CHECK (withdrawable IN (0, 1));

CREATE TRIGGER journeys_changed AFTER INSERT OR UPDATE OR DELETE ON journeys
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
CREATE TRIGGER proactive_tenants_changed AFTER INSERT OR UPDATE OR DELETE ON proactive_tenants
  FOR EACH STATEMENT EXECUTE FUNCTION tell_of_change('assets');
