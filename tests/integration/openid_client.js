// One scenario of an application that uses openid-client, run by test_openid_client.py:
//   node openid_client.js SCENARIO < CONFIG
// CONFIG is JSON with `url`, `redirect`, `username`, `password`, `message` (the body of an inject)
// and the clients `shop` (confidential) and `app` (public). Exits with 0 if the scenario passes;
// otherwise prints the failed check.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { Issuer, errors, generators } = require('openid-client');

const config = JSON.parse(fs.readFileSync(0, 'utf8'));

// Uses both paths of the routes: under the base path and without it.
const issuer = new Issuer({
  issuer: config.url,
  authorization_endpoint: `${config.url}/auth/oauth2/authorize`,
  token_endpoint: `${config.url}/new/auth/oauth2/token`,
  revocation_endpoint: `${config.url}/auth/oauth2/revoke`,
});

function makeClient({ clientId, clientSecret }, method, at = issuer) {
  return new at.Client({
    client_id: clientId,
    ...(clientSecret ? { client_secret: clientSecret } : {}),
    redirect_uris: [config.redirect],
    response_types: ['code'],
    token_endpoint_auth_method: method,
  });
}

const clients = {
  shopByBasic: makeClient(config.shop, 'client_secret_basic'),
  shopByForm: makeClient(config.shop, 'client_secret_post'),
  app: makeClient(config.app, 'none'),
};

// The status of an inject with this access token.
async function statusWith(accessToken) {
  const answer = await fetch(`${config.url}/v2.0/endpoint/inject`, {
    method: 'POST',
    headers: { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(config.message),
  });
  return answer.status;
}

function attribute(tag, name) {
  const found = new RegExp(`\\b${name}="([^"]*)"`).exec(tag);
  return found ? found[1].replaceAll('&amp;', '&') : undefined;
}

// Opens the sign-in page, fills it in and sends it, as a browser's user does. Returns the redirect.
async function signIn(url) {
  const page = await fetch(url);
  assert.equal(page.status, 200);
  const text = await page.text();
  const fields = new URLSearchParams();
  for (const [tag] of text.matchAll(/<input\b[^>]*>/g)) {
    if (attribute(tag, 'name')) fields.set(attribute(tag, 'name'), attribute(tag, 'value') ?? '');
  }
  fields.set('username', config.username);
  fields.set('password', config.password);
  const form = /<form\b[^>]*>/.exec(text)[0];
  assert.equal(attribute(form, 'method'), 'post');
  const answer = await fetch(new URL(attribute(form, 'action') ?? '', url), {
    method: 'POST',
    headers: { origin: config.url, 'sec-fetch-site': 'same-origin' },
    body: fields,
    redirect: 'manual',
  });
  assert.equal(answer.status, 303, await answer.text());
  return answer.headers.get('location');
}

// An authorization request and its answer. Returns the code.
async function requestCode(client) {
  const verifier = generators.codeVerifier();
  const checks = { state: generators.state(), code_verifier: verifier };
  const location = await signIn(client.authorizationUrl({
    state: checks.state,
    code_challenge: generators.codeChallenge(verifier),
    code_challenge_method: 'S256',
  }));
  return { parameters: client.callbackParams(location), checks };
}

async function byCode(client) {
  const { parameters, checks } = await requestCode(client);
  return client.oauthCallback(config.redirect, parameters, checks);
}

function byPassword(client) {
  return client.grant({
    grant_type: 'password', username: config.username, password: config.password,
  });
}

function expectRefused(promise, error) {
  return assert.rejects(promise, (refusal) => {
    assert.ok(refusal instanceof errors.OPError, String(refusal));
    assert.equal(refusal.error, error);
    assert.ok(refusal.error_description);
    return true;
  });
}

// Tokens open the API and are renewed. A second use of a refresh token revokes all of them.
async function checkTokens(client, first) {
  assert.equal(first.token_type, 'Bearer');
  assert.ok(first.expires_in > 0);
  assert.equal(await statusWith(first.access_token), 200);
  const second = await client.refresh(first.refresh_token);
  const third = await client.refresh(second);  // a set of tokens is accepted, too
  assert.equal(new Set([first, second, third].map((each) => each.refresh_token)).size, 3);
  assert.equal(await statusWith(third.access_token), 200);
  await expectRefused(client.refresh(second.refresh_token), 'invalid_grant');
  for (const tokens of [first, second, third]) {
    assert.equal(await statusWith(tokens.access_token), 401);
  }
  await expectRefused(client.refresh(third.refresh_token), 'invalid_grant');
}

async function checkRevocation(client, grant) {
  const tokens = await grant(client);
  const others = await grant(client);
  await client.revoke(tokens.access_token, 'access_token');
  assert.equal(await statusWith(tokens.access_token), 401);
  const renewed = await client.refresh(tokens.refresh_token);
  assert.equal(await statusWith(renewed.access_token), 200);
  await client.revoke(renewed.refresh_token, 'refresh_token');
  assert.equal(await statusWith(renewed.access_token), 401);
  await expectRefused(client.refresh(renewed.refresh_token), 'invalid_grant');
  await client.revoke('nobody has this token');
  assert.equal(await statusWith(others.access_token), 200, 'another sign-in goes on');
}

const scenarios = {
  async codeGrantOfAPublicClient() {
    await checkTokens(clients.app, await byCode(clients.app));
  },
  async codeGrantOfAConfidentialClient() {
    await checkTokens(clients.shopByBasic, await byCode(clients.shopByBasic));
    await checkTokens(clients.shopByForm, await byCode(clients.shopByForm));
  },
  async passwordGrant() {
    await checkTokens(clients.shopByBasic, await byPassword(clients.shopByBasic));
    await checkTokens(clients.shopByForm, await byPassword(clients.shopByForm));
    await expectRefused(byPassword(clients.app), 'unauthorized_client');
    const wrong = { grant_type: 'password', username: config.username, password: 'wrong' };
    await expectRefused(clients.shopByForm.grant(wrong), 'invalid_grant');
  },
  async codesAreGoodOnceAndForTheirVerifierOnly() {
    const { parameters, checks } = await requestCode(clients.app);
    const exchange = (verifier) => clients.app.oauthCallback(
      config.redirect, parameters, { ...checks, code_verifier: verifier });
    await expectRefused(exchange(generators.codeVerifier()), 'invalid_grant');
    const tokens = await exchange(checks.code_verifier);
    assert.equal(await statusWith(tokens.access_token), 200);
    await expectRefused(exchange(checks.code_verifier), 'invalid_grant');
    assert.equal(await statusWith(tokens.access_token), 401, 'the second use ends the first');
    await expectRefused(clients.app.refresh(tokens.refresh_token), 'invalid_grant');
  },
  // The service's metadata is enough for a client, at the base path, too.
  async metadata() {
    for (const path of ['', '/new']) {
      const address = config.url + path;
      // RFC 8414 §3.1: the well-known path precedes the issuer's path.
      const found = await Issuer.discover(`${config.url}/.well-known/oauth-authorization-server${path}`);
      assert.equal(found.metadata.issuer, address);
      const client = makeClient(config.app, 'none', found);
      const { parameters, checks } = await requestCode(client);
      assert.equal(parameters.iss, address);
      const mixedUp = { ...parameters, iss: 'https://evil.example' };
      await assert.rejects(client.oauthCallback(config.redirect, mixedUp, checks), /iss mismatch/);
      const { iss, ...without } = parameters;
      await assert.rejects(client.oauthCallback(config.redirect, without, checks), /iss missing/);
      const tokens = await client.oauthCallback(config.redirect, parameters, checks);
      assert.equal(await statusWith(tokens.access_token), 200);
      await client.revoke(tokens.refresh_token);
    }
  },
  async revocation() {
    await checkRevocation(clients.shopByBasic, byPassword);
    await checkRevocation(clients.app, byCode);
  },
};

scenarios[process.argv[2]]().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
