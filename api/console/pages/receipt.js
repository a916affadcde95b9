// What happened to an event, step by step: a waterfall from its accept to the webhook's answer.
import { ask, at } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, clock, code, duration, facts, head, link, panel, sessionLink } from '../shell/pieces.js';

const causes = {
  queue: 'in the log, for a worker',
  recovery: 'alone, after a crash',
  session: 'behind earlier events of its session',
  commit: 'for the store',
  call: 'for a connection to the upstream',
  sleep: 'asleep',
  retry: 'for the next try',
  connection: 'for a connection to the webhook',
  output: 'behind the output before it',
};

const tries = (step) => (step.tries ? `, tries ${step.try - step.tries + 1} to ${step.try}` : step.try > 1 ? `, try ${step.try}` : '');
const tried = (step) => `${[step.status ? `status ${step.status}` : '', step.error].filter(Boolean).join(', ')}${tries(step)}`;
const failed = (step) => Boolean(step.error) || step.status >= 400 || step.status === 0 || Boolean(step.deadLetter);

function changed({ changes, changesLeftOut }) {
  if (!changes) return '';
  const paths = changes.map(({ path }) => path).join(', ');
  return `; changed ${paths}${changesLeftOut ? ` and ${changesLeftOut} more` : ''}`;
}

// A step's title, and what else is known of it.
export function tell(step) {
  switch (step.what) {
    case 'accepted': return ['Accepted', [step.by ? `from ${step.by}` : '', step.daemon ? `by ${step.daemon}` : ''].filter(Boolean).join(', ')];
    case 'waited': return ['Waited', `${causes[step.cause] ?? ''}${step.behind ? ` (${step.behind})` : ''}`];
    case 'turn': return [`Turn of ${step.flow ?? 'no Flow'}${step.version ? ` v${step.version}` : ''}`,
      step.ended ?? step.reason ?? `${(step.nodes ?? []).join(' → ')}${changed(step)}`];
    case 'call': return [`Call to ${step.to ?? ''}`, tried(step)];
    default: return [`Delivery${step.seq ? ` of output ${step.seq}` : ''}${step.to ? ` to ${step.to}` : ''}`, tried(step)];
  }
}

function kind(step) {
  if (step.what === 'waited') return 'waited';
  if (failed(step)) return 'failed';
  return step.what === 'turn' ? 'turn' : '';
}

const took = (step) => (step.micros === null ? 'goes on' : step.micros < 1000 ? `${step.micros} µs` : duration(step.micros / 1e6));

export function waterfall({ steps }) {
  const begin = Math.min(...steps.map(({ fromMs }) => fromMs));
  const endOf = (step) => step.fromMs + (step.micros === null ? Math.max(0, Date.now() - step.fromMs) : step.micros / 1000);
  const whole = Math.max(1, Math.max(...steps.map(endOf)) - begin);
  return el('div', { className: 'falls' }, el('ol', { className: 'waterfall' }, steps.map((step) => {
    const [title, detail] = tell(step);
    const bar = el('i', { className: kind(step) });
    bar.style.left = `${Math.min(99, ((step.fromMs - begin) / whole) * 100)}%`;
    bar.style.width = `${Math.min(100, ((endOf(step) - step.fromMs) / whole) * 100)}%`;
    return el('li', {},
      el('div', {}, el('strong', {}, title), ' ', el('span', { className: 'soft' }, detail),
        step.answer ? el('div', { className: 'soft small' }, el('q', {}, step.answer)) : null),
      el('div', { className: 'bar', 'aria-hidden': 'true' }, bar),
      el('div', { className: 'took' }, took(step), el('div', { className: 'soft small' }, clock(step.fromMs / 1000))));
  })));
}

export default async function receipt(page) {
  const [id] = page.path;
  const [{ items: endpoints }, first] = await Promise.all([
    ask('endpoints', { projectId: page.project }, page.signal), ask(at('receipts', id), {}, page.signal)]);
  const URLToken = endpoints.find(({ _id }) => _id === first.endpointId)?.URLToken;
  const show = (shown) => {
    const open = shown.steps.filter((step) => step.micros === null);
    const said = shown.steps.find((step) => step.text)?.text;
    page.show(
      head(['Receipt ', code(shown._id)], badge(shown.state === 'open' ? 'goes on' : 'ended', shown.state === 'open' ? 'wait' : 'good')),
      open.map((step) => el('div', { className: 'why' }, el('p', {}, el('strong', {}, tell(step)[0]), ' ', tell(step)[1],
        step.next ? [', next try at ', clock(step.next / 1000)] : null))),
      facts([['User', sessionLink({ ...shown, URLToken })], ['Session', shown.sessionId], ['Text', said],
        ['Events that wait for it', shown.othersWaiting || null]]),
      panel('', waterfall(shown)),
      panel('Ids', el('p', {}, 'Trace ', code(shown.traceId),
        shown.previous ? [el('br'), 'The session\'s event before it ', link(code(shown.previous), 'receipt', shown.previous)] : null,
        shown.others.map((other) => [el('br'), 'Of the same trace or key ', link(code(other), 'receipt', other)]))));
    return shown.state === 'open';
  };
  if (!show(first)) return;
  const again = async () => show(await ask(at('receipts', id), {}, page.signal));
  // The Endpoint of a session may be gone, or in another project.
  if (URLToken) await page.follow('sessions/events', { URLToken, userId: first.userId, sessionId: first.sessionId }, again);
  else await page.every(5000, again);
}
