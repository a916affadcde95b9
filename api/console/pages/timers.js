// The timers: follow-ups, sleeps, time-outs of questions, schedules.
import { act, ask, at, naming } from '../shell/ask.js';
import { button, choice, confirmed, empty, filters, head, pages, panel, say, sessionLink, time } from '../shell/pieces.js';
import { waitsFor } from '../shell/reasons.js';

export const kinds = {
  journey: 'Follow-up of the journey', followUp: 'Follow-up of a Node', sleep: 'Sleep', question: 'Question\'s time-out', schedule: 'Schedule',
};

export default async function timers(page) {
  const cancel = (item) => (item.kind === 'sleep' ? '' : button('Cancel', async () => {
    const text = item.kind === 'question' ? 'Let this question wait for as long as it takes?' : 'Cancel this timer?';
    if (!await confirmed(text, 'Cancel it')) return;
    await act(at('timers', item._id), null, 'DELETE');
    say('Cancelled.');
    page.again();
  }, 'danger'));
  const kind = page.query.get('kind');
  const named = await naming(page);
  const list = await pages([
    ['Due', (item) => time(item.dueAt)],
    ['Kind', (item) => kinds[item.kind] ?? item.kind],
    ['Waits for', waitsFor],
    ['User', (item) => sessionLink(item)],
    ['Session', (item) => item.sessionId],
    ['Endpoint', (item) => item.endpoint],
    ['', cancel, 'actions'],
  ], empty('No timers', 'Nothing waits for a time.'), async (after) =>
    named(await ask('timers', { projectId: page.project, kind, reason: page.query.get('reason'), after }, page.signal)));
  page.show(head('Timers'), filters(page, choice('Kind', 'kind', [['', 'all'], ...Object.entries(kinds)], kind)), panel('', list));
}
