-- E-mail domains that belong to an organisation: others can add no users with addresses there. In
-- lower case. Additions only.
CREATE TABLE organisation_domains (
  domain plain_text PRIMARY KEY,
  organisation_id plain_text NOT NULL REFERENCES organisations (id)
);
CREATE INDEX organisation_domains_by_organisation ON organisation_domains (organisation_id);
