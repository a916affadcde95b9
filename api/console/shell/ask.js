// Requests to the management routes, with the credentials that the browser has asked its user for.

// The page's address without its credentials.
const routes = location.origin + location.pathname.replace(/[^/]*$/, '');
// The address of the API, for the routes of clients.
export const api = routes.replace(/management\/$/, '');

export class Refused extends Error {
  constructor(message, status = 0, details = {}) {
    super(message);
    this.status = status;
    this.details = details;  // for programs
  }
}

async function read(answer) {
  const text = await answer.text();
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;  // A proxy or another program answered, not the daemon.
  }
}

async function request(address, options, take = read) {
  let answer;
  try {
    answer = await fetch(address, options);
    if (answer.ok) return await take(answer);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused('The daemon does not answer. Is it running?');
  }
  const body = await read(answer);
  throw new Refused(body?.detail ?? `The answer was ${answer.status}.`, answer.status, body?.details);
}

function address(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  return routes + path + (query.size ? '?' + query : '');
}

// Joins segments of a path.
export const at = (...segments) => segments.map(encodeURIComponent).join('/');

// Gets a management route. Throws the daemon's error message as a Refused.
export const ask = (path, parameters = {}, signal = undefined) => request(address(path, parameters), { signal });

export const act = (path, body, method = 'POST') => request(address(path, {}), {
  method,
  headers: body ? { 'Content-Type': 'application/json' } : {},
  body: body ? JSON.stringify(body) : undefined,
});

// Posts to a route of clients.
export const post = (path, body) => request(api + path, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
  credentials: 'omit',
});

// The answer, or null if there is no such thing or this user may not see it.
export async function find(path, parameters = {}, signal = undefined) {
  try {
    return await ask(path, parameters, signal);
  } catch (error) {
    if (error instanceof Refused && [400, 403, 404].includes(error.status)) return null;
    throw error;
  }
}

// Lets rows of the project's lists name their Endpoint and link to their session.
export async function naming(page) {
  const { items: endpoints } = await ask('endpoints', { projectId: page.project }, page.signal);
  const names = new Map(endpoints.map(({ _id, name, URLToken }) => [_id, { endpoint: name, URLToken }]));
  return (list) => ({ ...list, items: list.items.map((item) => ({ ...names.get(item.endpointId), ...item })) });
}

// Names of the organisation's users by their ids, for users who may see them.
export async function people(page) {
  const users = await find('users', {}, page.signal);
  const emails = new Map((users?.items ?? []).map(({ _id, email }) => [_id, email]));
  return (id) => emails.get(id) ?? 'a user of the API';
}

// The next server-sent event of a management route behind the event `known`; null: none came for
// some seconds. An EventSource would not tell why it was refused.
export async function hear(path, parameters, known, signal) {
  const headers = known ? { 'Last-Event-ID': known } : {};
  const text = await request(address(path, parameters), { signal, headers }, (answer) => answer.text());
  return /^id: (.*)$/m.exec(text)?.[1] ?? null;
}
