// Lists the problems of a project, and the work that waits, by reason.
import { act, at, find } from './ask.js';
import { el } from './dom.js';
import { address, button, counted, due, link, prose, say, table, time } from './pieces.js';
import { reasonBadge, since } from './reasons.js';

const most = 100;  // rows of each list that are read

// These do harm. The overview tells of each by itself.
const faults = ['inboxFull', 'shareUsedUp', 'quota', 'partitionRecovering'];
// Told as the health of Endpoint, store or log, or as that of the output before.
const told = ['deliveryFailing', 'endpointPaused', 'behindOutput', 'storeDown', 'logDown', 'partitionWithoutOwner'];

// [route, filter, name of one row, whether the row counts]
const lists = [
  ['sessions', { state: 'busy' }, 'session', () => true],
  ['sessions', { state: 'idle', reason: 'quota' }, 'session', () => true],
  ['deliveries', {}, 'output', () => true],
  ['timers', {}, 'timer', ({ kind }) => kind !== 'sleep'],  // its session counts
];

// The rows by route and reason, as { path, thing, count, isMore, waits, item, tokens }: `waits` are the
// reasons of `item`, the row that has waited for longest, and `tokens` the Endpoints of all.
async function readGroups(page) {
  const found = await Promise.all(lists.map(([path, filter]) =>
    find(path, { projectId: page.project, limit: most, ...filter }, page.signal)));
  const groups = new Map();
  lists.forEach(([path, , thing, counts], i) => {
    for (const item of (found[i]?.items ?? []).filter((each) => each.waits?.length && counts(each))) {
      const [own] = item.waits;
      const key = `${path} ${own.reason}`;
      const group = groups.get(key) ?? { path, thing, count: 0, isMore: Boolean(found[i].next), waits: item.waits, item, tokens: [] };
      groups.set(key, group);
      group.count += 1;
      group.tokens.push(item.URLToken);
      if ((own.since ?? Infinity) < (group.waits[0].since ?? Infinity)) Object.assign(group, { waits: item.waits, item });
    }
  });
  return [...groups.values()];
}

// The Endpoints whose webhook does not work, with their health.
async function readWebhooks(page) {
  const endpoints = await find('endpoints', { projectId: page.project }, page.signal);
  const failing = (endpoints?.items ?? []).filter(({ webhookState }) => ['fails', 'paused'].includes(webhookState));
  return Promise.all(failing.map(async (endpoint) =>
    ({ ...endpoint, health: await find(at('endpoints', endpoint._id, 'health'), {}, page.signal) })));
}

// Null: the user has no right to read them. A refusal is remembered, because the audit trail notes each.
// The groups count many rows, so they are read again only after a change.
async function readLetters(page, { counts, newestDeadLetter }, before) {
  const mark = `${counts.deadLetters} ${newestDeadLetter}`;
  if (counts.deadLetters === 0) return { mark, letters: [] };
  if (before && (before.letters === null || before.mark === mark)) return before;
  const found = await find('deadletters/groups', { projectId: page.project, state: 'new' }, page.signal);
  return { mark, letters: found ? found.items : null };
}

// The waiting work of a project. `status` is the daemon's, `before` the result of the look before.
export async function readWaiting(page, status, before) {
  if (!page.project) return { groups: [], webhooks: [], letters: [] };
  const [groups, webhooks, { mark, letters }] = await Promise.all([readGroups(page), readWebhooks(page), readLetters(page, status, before)]);
  return { groups, webhooks, letters, mark };
}

const entry = (title, lines, ...actions) => el('li', {},
  el('div', {}, el('strong', {}, title), lines.filter(Boolean).map((line) => el('p', {}, line))),
  actions.length ? el('div', { className: 'actions' }, actions) : null);
const remedy = (text) => el('span', { className: 'soft' }, prose(text));
const to = (text, path, filter) => el('a', { href: `${address(path)}?${new URLSearchParams(filter)}` }, text);

function ofWebhook(page, { _id, name, URLToken, webhookState, health }, groups) {
  const outputs = groups.filter(({ path }) => path === 'deliveries');
  const count = outputs.reduce((sum, { tokens }) => sum + tokens.filter((token) => token === URLToken).length, 0);
  const paused = webhookState === 'paused';
  const resume = button('Resume', async () => {
    await act(at('endpoints', _id, 'resume'));
    say('Its deliveries go on.');
    page.again();
  });
  return entry(`The webhook of ${name} ${paused ? 'is paused' : 'fails'}`, [
    health ? [`${counted(health.failures, 'failed try', 'failed tries')}, the first one `, time(health.failingSince), `; the last error: ${health.lastError}.`,
      health.rate?.failedPercent ? ` ${health.rate.failedPercent} % of the last ${counted(health.rate.posts, 'POST')} failed.` : null,
      health.nextProbeAt ? [' Next try: ', due(health.nextProbeAt), '.'] : null] : null,
    `${counted(count, 'output')}${outputs.some(({ isMore }) => isMore) ? ' or more' : ''} ${count === 1 ? 'waits' : 'wait'} in order. Nothing is lost.`,
    remedy(paused ? 'Mend the receiver. One output a minute tries it; Resume sends all outputs that wait.'
      : 'Mend the receiver. Outputs are sent again until they arrive.'),
  ], to('Deliveries', 'deliveries', { URLToken }), paused ? resume : null);
}

export const whereFailed = ({ flow, flowVersion, node }) => (flow ? `${flow} version ${flowVersion}, ${node ?? 'before its first Node'}` : null);

function ofLetters(group) {
  const { reason, count, last, flow, flowVersion, node } = group;
  const filter = Object.fromEntries(Object.entries({ state: 'new', reason, flow, flowVersion, node }).filter(([, value]) => value));
  return entry(`${counted(count, 'dead letter')}: ${reason}`, [
    [whereFailed(group) ? `${whereFailed(group)}. ` : '', 'The last one: ', time(last), '.'],
    remedy('Mend the cause, then let them run again.'),
  ], to('Open', 'deadletters', filter));
}

const ofFault = ({ path, waits, item }) => entry(waits[0].subject, [
  waits.slice(1).map((wait) => [wait.subject, since(wait), ' ']), since(waits[0]), remedy(waits[0].remedy),
], waits[0].reason === 'quota' ? null : to('Open', path, { reason: waits[0].reason }),
item.URLToken && waits[0].reason !== 'quota' ? link('Session', 'sessions', item.URLToken, item.userId, item.sessionId) : null);

const mostLetters = 5;  // groups

// The faults, the worst first.
export function attention(page, { counts, queue, store, warnings }, { groups, webhooks, letters }) {
  const free = queue.partitions.filter(({ owner, lag }) => !owner && lag > 0);
  const others = counts.deadLetters > 0 && letters !== null && letters.length === 0;
  const hidden = counts.deadLetters > 0 && letters === null;
  const lines = [
    store.healthy ? null : entry('The store can\'t be written', [store.error ? `${store.error}. ` : '', 'Accepted events wait in the log, and go on by themselves when it works.',
      remedy('Look at the disk or the database server.')]),
    queue.healthy ? null : entry('The log can\'t be written', [queue.error ? `${queue.error.replace(/\.$/, '')}. ` : '', 'Clients are answered 503, and nothing is lost.', remedy('Look at the disk or the brokers.')]),
    free.length === 0 ? null : entry(`${counted(free.length, 'partition')} of the log without a daemon`, [
      `Their events wait: partition ${free.map(({ partition }) => partition).join(', ')}.`, remedy('Start a daemon with the role worker.')]),
    webhooks.map((webhook) => ofWebhook(page, webhook, groups)),
    groups.filter(({ waits }) => faults.includes(waits[0].reason)).map(ofFault),
    (letters ?? []).slice(0, mostLetters).map(ofLetters),
    letters?.length > mostLetters ? entry(`Dead letters with ${counted(letters.length - mostLetters, 'other reason')}`, [], link('Open', 'deadletters')) : null,
    others ? entry(counted(counts.deadLetters, 'dead letter'), ['Events that failed, and outputs that were not delivered, of other projects.'],
      link('Open', 'deadletters')) : null,
    hidden ? entry(counted(counts.deadLetters, 'dead letter'), ['Only a conversationAdmin of their project sees them.']) : null,
    warnings.map((warning) => entry('A setting may be a mistake', [warning])),
  ].flat().filter(Boolean);
  return lines.length ? el('ul', { className: 'attention' }, lines) : el('p', { className: 'soft' }, 'Nothing. Log and store are healthy.');
}

// Work that waits as it should: for an upstream, a user, a time, or earlier events.
export function waiting({ groups, refused }) {
  if (refused) return el('p', { className: 'soft' }, `It can't be read: ${refused}.`);
  const shown = groups.filter(({ waits }) => ![...faults, ...told].includes(waits[0].reason))
    .sort((a, b) => (a.waits[0].since ?? Infinity) - (b.waits[0].since ?? Infinity));
  return table([
    ['Reason', ({ waits }) => reasonBadge(waits[0].reason)],
    ['How many', ({ path, thing, count, isMore, waits }) =>
      to(counted(count, thing) + (isMore ? ' or more' : ''), path, { reason: waits[0].reason }), 'brief'],
    ['Such as', ({ waits }) => [waits[0].subject, ' ', remedy(waits[0].remedy)], 'wide'],
    ['Since', ({ waits }) => time(waits[0].since)],
    ['Expected', ({ waits }) => due(waits[0].expectedAt)],
  ], shown, el('p', { className: 'soft' }, groups.length > 0 ? 'Nothing else.' : 'Nothing.'));
}
