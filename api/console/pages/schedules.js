// Injects that come at set times.
import { act, ask, at, naming } from '../shell/ask.js';
import { button, code, confirmed, empty, head, number, pages, panel, say, sessionLink, time } from '../shell/pieces.js';

export default async function schedules(page) {
  const cancel = (item) => button('Cancel', async () => {
    if (!await confirmed('Cancel this schedule?', 'Cancel it')) return;
    await act(at('schedules', item._id), null, 'DELETE');
    say('Cancelled.');
    page.again();
  }, 'danger');
  const named = await naming(page);
  const list = await pages([
    ['Next', (item) => time(item.dueAt)],
    ['Rule', (item) => (item.cron ? [code(item.cron), ` ${item.timezone}`] : 'once')],
    ['User', (item) => sessionLink(item)],
    ['Session', (item) => item.sessionId],
    ['Text', (item) => item.text],
    ['Fired', (item) => number(item.fired), 'number'],
    ['', cancel, 'actions'],
  ], empty('No schedules', [code('conversectl inject'), ' with ', code('--at'), ', ', code('--in'), ' or ', code('--cron'), ' makes one.']),
  async (after) => named(await ask('schedules', { projectId: page.project, after }, page.signal)));
  page.show(head('Scheduled injects'), panel('', list));
}
