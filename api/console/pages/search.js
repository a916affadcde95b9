// Finds by id or name what the project and the organisation have.
import { ask, at, find } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { address, badge, code, empty, head, link, panel, sessionLink, table, time } from '../shell/pieces.js';
import { kinds } from './timers.js';

const pagesToRead = 5;

// The ids that only the route `why` finds.
const things = {
  delivery: ['Output', 'deliveries'], timer: ['Timer', 'timers'], call: ['Call', 'sessions'], event: ['Event', 'sessions'],
  deadLetter: ['Dead letter', 'deadletters'], job: ['Job', 'jobs'],
};

// Rows of a list that match, of its first pages.
async function rows(page, path, matches) {
  const found = [];
  let after = null;
  for (let i = 0; i < pagesToRead && found.length < 20; ++i) {
    const list = await find(path, { projectId: page.project, limit: 100, after }, page.signal);
    if (!list) break;
    found.push(...list.items.filter(matches));
    after = list.next ?? null;
    if (after === null) break;
  }
  return found;
}

export default async function search(page) {
  const text = (page.query.get('q') ?? '').trim();
  const lower = text.toLowerCase();
  const is = (...values) => values.some((value) => value === text);
  const names = (...values) => is(...values) || values.some((value) => String(value ?? '').toLowerCase().includes(lower));
  const of = { projectId: page.project };
  const small = async (path, of_project, matches) => ((await find(path, of_project, page.signal))?.items ?? []).filter(matches);
  const one = async (path) => (/^[a-z0-9]{24}$/.test(text) ? find(path, {}, page.signal) : null);

  const anyId = /^[A-Za-z0-9_.-]{8,200}$/.test(text);
  const [receipt, waits, output, letter, job, schedule, ofUser, sessions, letters, timers, projects, flows, endpoints, connections, users, keys, tokens, clients, audit] = await Promise.all([
    anyId ? find(at('receipts', text), {}, page.signal) : null,
    anyId ? find(at('why', text), {}, page.signal) : null,
    /^[a-z0-9]{24}-/.test(text) ? find(at('deliveries', text), {}, page.signal) : null,
    one(at('deadletters', text)), one(at('tasks', text)), one(at('schedules', text)),
    find('sessions', { ...of, userId: text }, page.signal),
    rows(page, 'sessions', (item) => is(item.userId, item.sessionId, item.endpointId, item.URLToken) || names(item.userId, item.sessionId)),
    rows(page, 'deadletters', (item) => is(item.eventId, item.traceId)),
    rows(page, 'timers', (item) => is(item._id)),
    small('projects', {}, (item) => names(item._id, item.name)),
    small('flows', of, (item) => names(item._id, item.name)),
    small('endpoints', of, (item) => names(item._id, item.name) || is(item.URLToken)),
    small('connections', of, (item) => names(item._id, item.name)),
    small('users', {}, (item) => names(item._id, item.email, item.name)),
    small('apikeys', {}, (item) => names(item._id, item.name)),
    small('tokens', {}, (item) => names(item._id, item.name)),
    small('oauth/clients', {}, (item) => names(item.clientId, item.name)),
    /^[a-z0-9]{24,64}$/.test(text) ? find('audit', { about: text, limit: 20 }, page.signal) : null,
  ]);
  const hits = [
    ...(receipt ? [['Receipt', link(receipt._id, 'receipt', receipt._id), `${receipt.userId} ${receipt.sessionId}`]] : []),
    ...(output ? [['Output', link(output._id, 'deliveries'), sessionLink(output, `${output.userId} ${output.sessionId}`)]] : []),
    ...(letter ? [letter] : letters).map((item) => ['Dead letter', link(item.reason, 'deadletter', item._id), item.state]),
    ...(job ? [['Job', link(job.name, 'jobs'), job.status]] : []),
    ...(schedule ? [['Schedule', link(schedule.cron ?? 'once', 'schedules'), `${schedule.userId} ${schedule.sessionId}`]] : []),
    ...timers.map((item) => ['Timer', link(kinds[item.kind] ?? item.kind, 'timers'), `${item.userId} ${item.sessionId}`]),
    ...[...(ofUser?.items ?? []), ...sessions.filter(({ userId }) => userId !== text)].map((item) => ['Session', sessionLink(item, `${item.userId} ${item.sessionId}`), item.endpoint]),
    ...projects.map((item) => ['Project', item.name, code(item._id)]),
    ...flows.map((item) => ['Flow', link(item.name, 'flow', item._id), code(item._id)]),
    ...endpoints.map((item) => ['Endpoint', link(item.name, 'endpoints'), code(item.URLToken)]),
    ...connections.map((item) => ['Connection', link(item.name, 'connection', item._id), code(item._id)]),
    ...users.map((item) => ['User', link(item.email, 'users'), code(item._id)]),
    ...keys.map((item) => ['API key', link(item.name, 'users'), code(item._id)]),
    ...tokens.map((item) => ['Management token', link(item.name, 'users'), code(item._id)]),
    ...clients.map((item) => ['OAuth client', link(item.name, 'users'), code(item.clientId)]),
    ...(audit?.items ?? []).map((item) => ['Audit entry', el('a', { href: `${address('audit')}?about=${item._id}` }, item.operation), [item.actor ?? 'unknown', ', ', time(item.at)]]),
  ];
  if (hits.length === 0 && things[waits?.kind]) {
    const [name, list] = things[waits.kind];
    hits.push([name, link(text, list), waits.waits[0]?.subject ?? 'It waits for nothing.']);
  }
  document.querySelector('#search input').value = text;
  page.show(head(['Found for ', el('q', {}, text)]), panel('', table([
    ['What', ([what]) => badge(what)],
    ['Name', ([, name]) => name],
    ['Where', ([, , more]) => more],
  ], hits, empty('Nothing has this id or name', 'The search reads the newest sessions, timers, dead letters and audit entries. Where no receipts are kept, look for an output that was delivered in its session.'))));
}
