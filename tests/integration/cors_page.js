// Runs in the page of test_cors_chromium.py. Makes the requests that the page's server lists, one
// after the other, and posts the parts of the answers that a script can see.
'use strict';

async function ask({ url, options }) {
  try {
    const answer = await fetch(url, options);
    return {
      type: answer.type,
      status: answer.status,
      headers: Object.fromEntries(answer.headers),
      body: await answer.text(),
    };
  } catch (error) {
    return { refused: error.name };
  }
}

async function run() {
  const results = {};
  for (const request of await (await fetch('/requests')).json()) {
    results[request.name] = await ask(request);
  }
  return results;
}

run()
  .catch((error) => ({ failed: String(error) }))
  .then((results) => fetch('/results', { method: 'POST', body: JSON.stringify(results) }));
