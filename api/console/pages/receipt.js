// The receipt of an event: a waterfall of its steps, from the accept to the webhook's answer.
import { ask, at, people } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, clock, code, counted, duration, facts, head, link, panel, sessionLink, zone } from '../shell/pieces.js';
import { why } from '../shell/reasons.js';

const causes = {
  queue: 'in the log, for a worker',
  recovery: 'alone, after a crash',
  session: 'behind an earlier event of its session',
  commit: 'for the store',
  call: 'for a connection to the upstream',
  sleep: 'asleep',
  collect: 'for more events',
  retry: 'for the next try',
  connection: 'for a connection to the webhook',
  output: 'behind the output before it',
};

// Of a step that goes on: it may have its connection already.
const openCauses = { ...causes, call: 'for the upstream', connection: 'for the webhook' };

const tries = (step) => (step.tries ? `, tries ${step.try - step.tries + 1} to ${step.try}` : step.try > 1 ? `, try ${step.try}` : '');
const tried = (step) => `${[step.status ? `status ${step.status}` : '', step.error, step.ended, step.deadLetter ? `dead letter ${step.deadLetter}` : ''].filter(Boolean).join(', ')}${tries(step)}`;
const failed = (step) => Boolean(step.error) || step.status >= 400 || step.status === 0 || (Boolean(step.deadLetter) && step.done !== 'replayed');

function changed({ changes, changesLeftOut }) {
  if (!changes) return '';
  const paths = changes.map(({ path }) => path).join(', ');
  return `; changed ${paths}${changesLeftOut ? ` and ${changesLeftOut} more` : ''}`;
}

// Of a Turn that keeps its event, or runs kept ones.
function collected({ collected: kept, eventsRun }) {
  if (kept) return '; collected its event';
  return eventsRun ? `; ran ${counted(eventsRun, 'collected event')}` : '';
}

// A step's title, and what else is known of it. `nameOf` names the user with an id.
export function tell(step, nameOf = (id) => id) {
  switch (step.what) {
    case 'accepted': return ['Accepted', [step.by ? `from ${step.sender ?? nameOf(step.by)}` : '', step.daemon ? `by ${step.daemon}` : ''].filter(Boolean).join(', ')];
    case 'waited': return [step.micros === null ? 'Waits' : 'Waited',
      step.behind > 1 ? `behind ${step.behind} earlier events of its session` : (step.micros === null ? openCauses : causes)[step.cause] ?? ''];
    case 'turn': return [step.flow ? `Turn of ${step.flow}${step.version ? ` v${step.version}` : ''}` : step.reason ? 'Turn that failed' : 'No Turn',
      step.ended ?? step.reason ?? `${(step.nodes ?? []).join(' → ')}${(step.branches ?? []).map((branch) => `; ${branch}`).join('')}${collected(step)}${changed(step)}`];
    case 'ran': return ['Ran with other events', `in the Turn of ${step.turnOf}`];
    case 'call': return [`Call to ${step.to ?? ''}`, tried(step)];
    default: if (step.done) return [`Output ${step.seq} ${step.done}`, `${step.by ? `by ${step.sender ?? nameOf(step.by)}, ` : ''}dead letter ${step.deadLetter}`];
      return [`Delivery${step.seq ? ` of output ${step.seq}` : ''}${step.to ? ` to ${step.to}` : ''}`, tried(step)];
  }
}

function kind(step) {
  if (step.what === 'waited') return 'waited';
  if (failed(step)) return 'failed';
  return step.what === 'turn' || step.what === 'ran' ? 'turn' : '';
}

export const took = (step) => (step.micros === null ? 'goes on' : step.micros < 1000 ? `${step.micros} µs` : duration(step.micros / 1e6));

export function waterfall({ steps }, nameOf) {
  const begin = Math.min(...steps.map(({ fromMs }) => fromMs));
  const endOf = (step) => step.fromMs + (step.micros === null ? Math.max(0, Date.now() - step.fromMs) : step.micros / 1000);
  const whole = Math.max(1, Math.max(...steps.map(endOf)) - begin);
  return el('div', { className: 'falls' }, el('ol', { className: 'waterfall' }, steps.map((step) => {
    const [title, detail] = tell(step, nameOf);
    const bar = el('i', { className: kind(step) });
    bar.style.left = `${Math.min(99, ((step.fromMs - begin) / whole) * 100)}%`;
    bar.style.width = `${Math.min(100, ((endOf(step) - step.fromMs) / whole) * 100)}%`;
    return el('li', {},
      el('div', {}, el('strong', {}, title), ' ', el('span', { className: 'soft' }, detail),
        step.waits?.length ? el('div', { className: 'small' }, step.waits[0].subject) : null,
        step.answer ? el('div', { className: 'soft small' }, el('q', {}, step.answer)) : null),
      el('div', { className: 'bar', 'aria-hidden': 'true' }, bar),
      el('div', { className: 'took' }, step.what === 'accepted' ? null : took(step), el('div', { className: 'soft small' }, clock(step.fromMs / 1000))));
  })));
}

export default async function receipt(page) {
  const [id] = page.path;
  const [{ items: endpoints }, nameOf, first] = await Promise.all([ask('endpoints', { projectId: page.project }, page.signal), people(page),
    ask(at('receipts', id), {}, page.signal)]);
  const endpoint = endpoints.find(({ _id }) => _id === first.endpointId);
  const URLToken = endpoint?.URLToken;
  const show = (shown) => {
    const open = shown.steps.filter((step) => step.micros === null).sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0));  // outputs wait for the first one
    const said = shown.steps.find((step) => step.text)?.text;
    page.show(
      head(['Receipt ', code(shown._id)], badge(shown.state === 'open' ? 'goes on' : 'ended', shown.state === 'open' ? 'wait' : 'good')),
      why(open.filter((step, i) => i === open.findIndex(({ seq }) => Boolean(seq) === Boolean(step.seq))).flatMap(({ waits }) => waits ?? [])),
      facts([['User', sessionLink({ ...shown, URLToken })], ['Session', shown.sessionId], ['Endpoint', endpoint?.name], ['Text', said],
        ['Events that wait for it', shown.othersWaiting || null]]),
      panel(['What happened ', el('span', { className: 'soft small' }, zone())], waterfall(shown, nameOf)),
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
