// One session as a timeline: what was said, what came in, Turns, calls, outputs with their
// deliveries, and what the conversation remembers. It follows the session while it is shown.
import { act, ask, at, find, people } from '../shell/ask.js';
import { el, replace } from '../shell/dom.js';
import { badge, button, clock, code, confirmed, counted, due, empty, facts, head, json, link, members, number, panel, say, time, zone } from '../shell/pieces.js';
import { why } from '../shell/reasons.js';
import { tell, took } from './receipt.js';

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

function delivery(output) {
  if (!output.delivery) return null;
  const { state, attempts, expectedAt } = output.delivery;
  if (state === 'behind') return ', waits for the output before it';
  return [`, delivery ${state === 'paused' ? 'paused' : 'waits'}`, attempts ? ` after ${counted(attempts, 'failed try', 'failed tries')}` : '', expectedAt ? [', next try: ', due(expectedAt)] : null];
}

function said(output) {
  return el('li', { className: 'bubble' }, output.text ?? '',
    output.data === null || output.data === undefined ? null : json(output.data),
    el('div', { className: 'meta' }, clock(output.createdAt), `, output ${output.seq}`, output.source === 'bot' ? '' : `, ${output.source}`, delivery(output)));
}

const valueOf = (bytes, value) => (value === undefined ? `${bytes} bytes` : code(typeof value === 'string' ? value : JSON.stringify(value)));

// A variable with its value before and behind the Turn.
function change({ path, removed, bytes, value, bytesBefore, before }) {
  return el('li', {}, code(path), ' ', bytesBefore ? [el('del', {}, valueOf(bytesBefore, before)), ' '] : null,
    removed ? el('ins', {}, 'removed') : el('ins', {}, '= ', valueOf(bytes, value)));
}

function turn(step) {
  const [title] = tell(step);
  return el('li', {}, el('details', {},
    el('summary', {}, el('b', {}, title), ` ${took(step)}, ${counted(step.nodesRun ?? (step.nodes ?? []).length, 'Node')}`),
    step.nodes?.length ? el('div', { className: 'chips' }, [...step.nodes, ...(step.branches ?? [])].map((node) => code(node))) : null,
    step.changes?.length ? el('ul', { className: 'changes' }, step.changes.map(change),
      step.changesLeftOut ? el('li', {}, `and ${counted(step.changesLeftOut, 'further change')}`) : null) : null,
    step.reason ? el('p', { className: 'bad' }, step.reason) : null));
}

// An event's part of the timeline. `outputs` has those of the session by number.
function part(receipt, outputs, nameOf) {
  const seen = [];
  for (const step of receipt.steps) {
    const [title, detail] = tell(step, nameOf);
    if (step.what === 'accepted') {
      const meta = [clock(step.fromMs / 1000), ' ', link('receipt', 'receipt', receipt._id)];
      seen.push(step.type === 'userMessage'
        ? el('li', { className: 'bubble me' }, step.text ?? '…', el('div', { className: 'meta' }, meta))
        : pill('', `${step.type}${step.text ? `: ${step.text}` : ''}${step.by ? ` from ${step.sender ?? nameOf(step.by)}` : ''}, `, meta));
    } else if (step.what === 'turn') {
      seen.push(turn(step), ...(step.outputs ?? []).map(({ seq }) => outputs.get(seq)).filter(Boolean).map(said));
    } else if (step.what === 'ran') {
      seen.push(pill('', `${title} in the Turn of `, link(code(step.turnOf), 'receipt', step.turnOf)));
    } else if (step.what === 'call') {
      seen.push(pill(step.error || step.status >= 400 || step.status === 0 ? 'bad' : '', `${title}: ${detail}, ${took(step)}`));
    } else if (step.what === 'delivery') {
      if (step.error || !(step.status >= 200 && step.status < 300)) seen.push(pill('bad', `${title}: ${detail}`, step.answer ? [' ', el('q', {}, step.answer)] : null));
    } else if (step.cause !== 'output' && (step.micros === null || step.micros > 1e6)) {
      seen.push(pill('wait', `${title} ${detail}`, step.micros === null ? null : `, ${took(step)}`));
    }
  }
  return seen;
}

function timeline(session, events, nameOf) {
  const outputs = new Map(session.outputs.map((output) => [output.seq, output]));
  const told = new Set(events.flatMap(({ receipt }) => receipt.steps.flatMap((step) => (step.outputs ?? []).map(({ seq }) => seq))));
  const earlier = session.outputs.filter(({ seq }) => !told.has(seq));
  if (earlier.length + events.length === 0) return empty('Nothing yet');
  return el('ol', { className: 'timeline', 'aria-live': 'polite' }, earlier.map(said), events.map((event) => {
    event.nodes ??= part(event.receipt, outputs, nameOf);
    return event.nodes;
  }));
}

// The Nodes that the next input, or the execution, goes on from.
export function standing({ flowState, execution }) {
  const { waiting } = flowState ?? {};
  const places = (waiting ? [...(waiting.callers ?? []), waiting] : [])
    .map(({ flow, version, at }) => el('li', {}, `${flow}${version ? ` version ${version}` : ''} at `, code(at)));
  return panel('Where the Flow stands',
    execution ? el('p', {}, 'It runs ', link('an event', 'receipt', execution.inputId), ' that began ', time(execution.beganAt), '.')
      : places.length ? el('ul', { className: 'plain' }, places) : el('p', { className: 'soft' }, 'The next event begins the Flow.'),
    el('details', {}, el('summary', {}, 'As stored'), json(flowState)));
}

export default async function session(page) {
  const [URLToken, userId, sessionId] = page.path;
  const names = { URLToken, userId, sessionId };
  const [{ items: endpoints }, nameOf] = await Promise.all([ask('endpoints', { projectId: page.project }, page.signal), people(page)]);
  const endpoint = endpoints.find((each) => each.URLToken === URLToken)?.name;
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
    const waits = shown.outputs.some((output) => output.delivery);
    const [events, deliveries] = await Promise.all([readEvents(page, shown.lastReceipt, kept),
      waits ? find('deliveries', { ...names, limit: 1 }, page.signal) : null]);
    for (const output of shown.outputs.filter((each) => each.delivery)) output.delivery.expectedAt = deliveries?.items[0]?.waits[0]?.expectedAt;
    replace(state, badge(shown.state, shown.state === 'busy' ? 'run' : ''));
    replace(above, [why(shown.waits), why(deliveries?.items[0]?.waits), facts([['Endpoint', endpoint], ['Last activity', time(shown.lastActivityAt)], ['Began', time(shown.startedAt)],
      ['In its inbox', counted(shown.inboxSize, 'event')], ['Turns', number(shown.version)]])]);
    replace(talk, [el('h2', {}, 'What happened ', el('span', { className: 'soft small' }, zone())), timeline(shown, events, nameOf)]);
    replace(beside, [panel('Context', members(shown.context)), panel('Profile of the user', shown.profileDamage ? el('p', { className: 'bad' }, `The stored profile can't be read: ${shown.profileDamage}.`) : members(shown.profile)), standing(shown)]);
    if (!talk.isConnected) {
      page.show(head([userId, ' ', el('span', { className: 'soft' }, sessionId)], state, end), above,
        el('div', { className: 'two' }, talk, beside));
    }
  });
}
