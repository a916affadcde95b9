// Injects that come at set times.
import { act, ask, at } from '../shell/ask.js';
import { button, code, confirmed, empty, head, number, pages, panel, say, time } from '../shell/pieces.js';

export default async function schedules(page) {
  const cancel = (item) => button('Cancel', async () => {
    if (!await confirmed('Cancel this schedule?', 'Cancel it')) return;
    await act(at('schedules', item._id), null, 'DELETE');
    say('Cancelled.');
    page.again();
  }, 'danger');
  const list = await pages([
    ['Next', (item) => time(item.dueAt)],
    ['Rule', (item) => (item.cron ? [code(item.cron), ` ${item.timezone}`] : 'once')],
    ['User', (item) => item.userId],
    ['Session', (item) => item.sessionId],
    ['Text', (item) => item.text],
    ['Fired', (item) => number(item.fired), 'number'],
    ['', cancel, 'actions'],
  ], empty('No schedules', 'conversectl inject --at, --in or --cron makes one.'),
  (after) => ask('schedules', { projectId: page.project, after }, page.signal));
  page.show(head('Scheduled injects'), panel('', list));
}
