// The state of the daemon: what needs attention, what waits and why, figures, the last hour, the log, the
// daemons.
import { ask, find, Refused } from '../shell/ask.js';
import { chart } from '../shell/charts.js';
import { el, replace } from '../shell/dom.js';
import { badge, duration, figures, head, link, noProjects, number, panel, table, time, zone } from '../shell/pieces.js';
import { attention, readWaiting, waiting } from '../shell/waiting.js';

const perSecond = (value) => (value >= 10 ? Math.round(value).toLocaleString() : (Math.round(value * 10) / 10).toLocaleString());
const count = (value) => Math.round(value).toLocaleString();

// Charts of the last hour: a title, a format, the least height, and lines with the series that they
// add up.
const charts = [
  ['Events a second', perSecond, 1, {
    accepted: ['conversed_events_appended_total rate'],
    Turns: ['conversed_turns_total rate'],
    delivered: ['conversed_deliveries_total{outcome="delivered"} rate'],
  }],
  ['Time that 99 % take at most', duration, 0.001, {
    accept: ['conversed_accept_seconds p99'],
    Turn: ['conversed_turn_seconds p99'],
    delivery: ['conversed_delivery_seconds p99'],
    call: ['conversed_call_seconds p99'],
  }],
  ['Waiting', count, 5, {
    events: ['conversed_log_lag value'],
    deliveries: ['conversed_deliveries_pending value'],
    calls: ['conversed_calls_in_flight value'],
  }],
  ['Wait for a Turn, of 99 %', duration, 0.001, {
    'for a worker': ['conversed_event_wait_seconds{reason="log"} p99'],
    'behind events of the session': ['conversed_event_wait_seconds{reason="events"} p99'],
    'in an inbox': ['conversed_event_wait_seconds{reason="inbox"} p99'],
    'after a crash': ['conversed_event_wait_seconds{reason="recovery"} p99'],
  }],
  ['The oldest has waited', duration, 1, {
    'behind events': ['conversed_waiting_seconds{reason="behindEvents"} value'],
    'behind jobs': ['conversed_waiting_seconds{reason="behindJobs"} value'],
    'webhook fails': ['conversed_waiting_seconds{reason="deliveryFailing"} value'],
    'webhook paused': ['conversed_waiting_seconds{reason="endpointPaused"} value'],
    'store down': ['conversed_waiting_seconds{reason="storeDown"} value'],
    'log down': ['conversed_waiting_seconds{reason="logDown"} value'],
  }],
  ['Failures a second', perSecond, 1, {
    refused: [/^conversed_injects_refused_total.* rate$/],
    'calls failed': ['conversed_calls_total{outcome="failed"} rate'],
    'deliveries retried': ['conversed_deliveries_total{outcome="retried"} rate'],
    'dead letters': ['conversed_dead_letters_total rate'],
  }],
];

// The sum of the series that match, at each time.
function sum(history, [wanted]) {
  const found = history.series.filter(({ metric, figure }) => {
    const name = `${metric} ${figure}`;
    return wanted instanceof RegExp ? wanted.test(name) : wanted === name;
  });
  return history.times.map((_, i) => found.reduce((total, { values }) => (values[i] === null ? total : (total ?? 0) + values[i]), null));
}

const parts = (status) => [
  el('div', { className: 'two' },
    panel('Partitions of the log', table([
      ['Partition', (item) => number(item.partition)],
      ['Committed', (item) => number(item.committed), 'number'],
      ['End', (item) => number(item.end), 'number'],
      ['Lag', (item) => number(item.lag), 'number'],
      ['Daemon', (item) => item.owner || badge('none', 'bad')],
    ], status.queue.partitions, 'The log can\'t be asked.', 'dense')),
    panel('Daemons', table([
      ['Name', (item) => item.name],
      ['Roles', (item) => item.roles.join(', ')],
      ['Version', (item) => item.version],
      ['Seen', (item) => time(item.seenAt)],
    ], status.members, 'No daemon is known.'))),
  el('p', { className: 'soft small' }, `Version ${status.version}, up for ${duration(status.uptime)}. Times are of ${zone()}.`),
];

function numbers({ counts, queue }, rates) {
  return figures([
    ['Accepted a second', rates ? perSecond(rates.appended) : '…'],
    ['Committed a second', rates ? perSecond(rates.sessionCommits) : '…'],
    ['Events not finished', number(queue.lag)],
    ['In inboxes', number(counts.inInboxes)],
    ['Calls and timers', number(counts.pendingCalls)],
    ['Deliveries pending', number(counts.pendingDeliveries)],
    ['Dead letters', number(counts.deadLetters), counts.deadLetters > 0 ? 'bad' : ''],
    ['Clients that wait', number(counts.waitingForAnswers)],
  ]);
}

export default async function overview(page) {
  const first = await find('status', {}, page.signal);
  if (!first) {
    return page.show(head('Overview'), panel('', el('p', {}, 'The state of the daemon is for users with the role platformAdmin. '),
      el('p', {}, 'Go on to ', link('Sessions', 'sessions'), '.')));
  }
  const top = el('div', {});
  const needs = panel('Needs attention');
  const waits = panel('What waits, and why');
  const note = el('p', { className: 'soft' });
  const below = el('div', {});
  const drawn = charts.map(([title, format, least, lines]) => chart(page, title, Object.keys(lines), format, least));

  let last = null;
  let found = null;
  const read = async () => {
    try {
      found = await readWaiting(page, last?.status ?? first, found);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      found = { groups: [], webhooks: [], letters: [], refused: error.message };  // the state tells why
    }
  };
  const tell = (status) => {
    replace(needs, [el('h2', {}, 'Needs attention'), attention(page, status, found)]);
    replace(waits, [el('h2', {}, 'What waits, and why'), waiting(found)]);
  };
  const state = async () => {
    const status = last ? await ask('status', {}, page.signal) : first;
    const now = performance.now();
    const passed = last ? (now - last.at) / 1000 : 0;
    const rates = passed > 0 && Object.fromEntries(['appended', 'sessionCommits'].map((name) =>
      [name, Math.max(0, status.counts[name] - last.status.counts[name]) / passed]));
    last = { at: now, status };
    replace(top, numbers(status, rates));
    tell(status);
    replace(below, parts(status));
  };
  await page.every(5000, read);
  await page.every(2000, state);
  page.show(head('Overview'), page.project ? null : panel('', noProjects()), needs, waits, top, note, el('div', { className: 'halves' }, drawn.map(([element]) => element)), below);
  await page.every(10000, async () => {
    const history = await ask('history', {}, page.signal);
    note.textContent = history.times.length < 2 ? 'The daemon has just started: the first figures come in some seconds.' : '';
    drawn.forEach(([, take], i) => take(history.times, Object.values(charts[i][3]).map((names) => sum(history, names))));
  });
}
