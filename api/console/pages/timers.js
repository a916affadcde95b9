// What falls due by itself: follow-ups, sleeps, time-outs of questions, schedules.
import { act, ask, at } from '../shell/ask.js';
import { button, confirmed, empty, head, pages, panel, say, time } from '../shell/pieces.js';

const kinds = {
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
  const list = await pages([
    ['Due', (item) => time(item.dueAt)],
    ['Kind', (item) => kinds[item.kind] ?? item.kind],
    ['Waits', (item) => (item.waits ?? []).map((each) => each.subject || each.reason).join('; ')],
    ['User', (item) => item.userId],
    ['Session', (item) => item.sessionId],
    ['', cancel, 'actions'],
  ], empty('No timers', 'Nothing waits for a time.'), (after) => ask('timers', { projectId: page.project, after }, page.signal));
  page.show(head('Timers'), panel('', list));
}
