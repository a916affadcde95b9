-- What a bundle says of Connections and webhook secrets is sealed like its values: somebody may have written a secret
-- there in place of `${NAME}`. What was kept before could be read; the next import brings it again.
UPDATE connections SET source = '';
UPDATE endpoints SET webhook_secret_source = '';
