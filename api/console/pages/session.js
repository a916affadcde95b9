// One session as a timeline: what was said, what came in, Turns, calls, outputs with their
// deliveries, and what the conversation remembers. It follows the session while it is shown.
import { act, ask, at, find } from '../shell/ask.js';
import { el, replace } from '../shell/dom.js';
import { badge, button, clock, code, confirmed, duration, empty, facts, head, json, link, number, panel, say, time } from '../shell/pieces.js';
import { tell } from './receipt.js';

// Events that are shown; the session's older ones are reached from the oldest receipt.
const most = 15;

// The receipts of the session's last events, the oldest first, as { receipt, nodes }. Those that have
// ended are kept with what is drawn of them.
async function readEvents(page, last, kept) {
  const found = [];
  for (let id = last; id && found.length < most;) {
    const receipt = kept.get(id)?.receipt ?? await find(at('receipts', id), {}, page.signal);
    if (!receipt) break;
    const event = kept.get(id) ?? { receipt, nodes: null };
    if (receipt.state === 'ended') kept.set(id, event);
    found.unshift(event);
    id = receipt.previous;
  }
  return found;
}

const pill = (kind, ...children) => el('li', { className: `event ${kind}` }, children);
const took = (step) => (step.micros === null ? 'goes on' : step.micros < 1000 ? `${step.micros} µs` : duration(step.micros / 1e6));

function delivery(output) {
  if (!output.delivery) return null;
  const { state, attempts, dueAt } = output.delivery;
  return [', delivery ', state, attempts ? ` after ${attempts} failed tries` : '', dueAt ? [', next try ', time(dueAt)] : null];
}

function said(output) {
  return el('li', { className: 'bubble' }, output.text ?? '',
    output.data === null || output.data === undefined ? null : json(output.data),
    el('div', { className: 'meta' }, clock(output.createdAt), `, output ${output.seq}`, output.source === 'bot' ? '' : `, ${output.source}`, delivery(output)));
}

function change({ path, bytes, removed, value }) {
  const now = value === undefined ? `${bytes} bytes` : code(typeof value === 'string' ? value : JSON.stringify(value));
  return el('li', {}, code(path), ' ', removed ? el('del', {}, 'removed') : el('ins', {}, '= ', now));
}

function turn(step) {
  const [title] = tell(step);
  return el('li', {}, el('details', {},
    el('summary', {}, el('b', {}, title), ` ${took(step)}, ${(step.nodes ?? []).length} Nodes`),
    step.nodes?.length ? el('div', { className: 'chips' }, step.nodes.map((node) => code(node))) : null,
    step.changes?.length ? el('ul', { className: 'changes' }, step.changes.map(change)) : null,
    step.reason ? el('p', { className: 'bad' }, step.reason) : null));
}

// An event's part of the timeline. `outputs` has those of the session by number.
function part(receipt, outputs) {
  const seen = [];
  for (const step of receipt.steps) {
    const [title, detail] = tell(step);
    if (step.what === 'accepted') {
      const meta = [clock(step.fromMs / 1000), ' ', link('receipt', 'receipt', receipt._id)];
      seen.push(step.type === 'userMessage'
        ? el('li', { className: 'bubble me' }, step.text ?? '…', el('div', { className: 'meta' }, meta))
        : pill('', `${step.type}${step.text ? `: ${step.text}` : ''}${step.by ? ` from ${step.by}` : ''}, `, meta));
    } else if (step.what === 'turn') {
      seen.push(turn(step), ...(step.outputs ?? []).map(({ seq }) => outputs.get(seq)).filter(Boolean).map(said));
    } else if (step.what === 'call') {
      seen.push(pill(step.error || step.status >= 400 || step.status === 0 ? 'bad' : '', `${title}: ${detail}, ${took(step)}`));
    } else if (step.what === 'delivery') {
      if (step.error || !(step.status >= 200 && step.status < 300)) seen.push(pill('bad', `${title}: ${detail}`, step.answer ? [' ', el('q', {}, step.answer)] : null));
    } else if (step.micros === null || step.micros > 1e6) {
      seen.push(pill('wait', `${title} ${detail}, ${took(step)}`));
    }
  }
  return seen;
}

function timeline(session, events) {
  const outputs = new Map(session.outputs.map((output) => [output.seq, output]));
  const told = new Set(events.flatMap(({ receipt }) => receipt.steps.flatMap((step) => (step.outputs ?? []).map(({ seq }) => seq))));
  const earlier = session.outputs.filter(({ seq }) => !told.has(seq));
  if (earlier.length + events.length === 0) return empty('Nothing yet');
  return el('ol', { className: 'timeline', 'aria-live': 'polite' }, earlier.map(said), events.map((event) => {
    event.nodes ??= part(event.receipt, outputs);
    return event.nodes;
  }));
}

export const why = (waits) => (waits ?? []).map((each) => el('div', { className: 'why' },
  el('p', {}, el('strong', {}, each.subject || each.reason), each.since ? [' since ', time(each.since)] : null,
    each.expectedAt ? [', expected ', time(each.expectedAt)] : null),
  el('p', { className: 'soft' }, each.remedy)));

export default async function session(page) {
  const [URLToken, userId, sessionId] = page.path;
  const names = { URLToken, userId, sessionId };
  const end = button('End the conversation', async () => {
    if (!await confirmed(`End the conversation of ${userId}? Its context is lost.`, 'End it')) return;
    await act('sessions/reset', names);
    say('The conversation has ended.');
  }, 'danger');
  const state = el('span', {});
  const above = el('div', {});
  const talk = panel('What happened');
  const beside = el('div', {});
  const kept = new Map();

  await page.follow('sessions/events', names, async () => {
    const shown = await ask('sessions/show', names, page.signal);
    const events = await readEvents(page, shown.lastReceipt, kept);
    replace(state, badge(shown.state, shown.state === 'busy' ? 'run' : ''));
    replace(above, [why(shown.waits), facts([['Last activity', time(shown.lastActivityAt)], ['Began', time(shown.startedAt)],
      ['In its inbox', number(shown.inboxSize)], ['Turns', number(shown.version)]])]);
    replace(talk, [el('h2', {}, 'What happened'), timeline(shown, events)]);
    replace(beside, [panel('Context', json(shown.context)), panel('Where the Flow stands', json(shown.flowState)),
      panel('What runs', shown.execution ? json(shown.execution) : el('p', { className: 'soft' }, 'Nothing. The next event begins a Turn.'))]);
    if (!talk.isConnected) {
      page.show(head([userId, ' ', el('span', { className: 'soft' }, sessionId)], state, end), above,
        el('div', { className: 'two' }, talk, beside));
    }
  });
}
