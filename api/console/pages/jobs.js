// Set-ups and other long work, with their progress.
import { act, ask, at } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, button, confirmed, empty, head, number, panel, table, time } from '../shell/pieces.js';

const isSetUp = ({ type }) => type === 'proactiveSetup';
const kinds = { done: 'good', error: 'bad', active: 'run', cancelling: 'wait' };

export default async function jobs(page) {
  const cancel = (item) => (['queued', 'active'].includes(item.status) ? button('Cancel', async () => {
    if (!await confirmed(`Cancel ${item.name}? What it has ${isSetUp(item) ? 'made is undone' : 'done stays'}.`, 'Cancel the job')) return;
    await act(at('tasks', item._id, 'cancel'));
    page.again();
  }, 'danger') : '');
  await page.every(2000, async () => {
    const list = await ask('tasks', { projectId: page.project, limit: 100, sort: 'createdAt:desc' }, page.signal);
    page.show(head('Jobs'), panel('', table([
      ['Job', (item) => item.name],
      ['Status', (item) => badge(item.status, kinds[item.status])],
      ['Progress', (item) => el('div', {},
        el('progress', { max: 100, value: item.progress, 'aria-label': `Progress of ${item.name}` }),
        el('div', { className: 'soft small' }, [`${Math.round(item.progress)} %, `,
          isSetUp(item) ? `step ${item.currentStep} of ${item.totalStep}` : `${number(item.data.changed)} changed, ${number(item.data.skipped)} skipped${Object.entries(item.data.reasons ?? {}).map(([reason, count]) => `; ${number(count)}: ${reason}`).join('')}`]))],
      ['Reason', (item) => item.failReason],
      ['Created', (item) => time(item.createdAt)],
      ['Changed', (item) => time(item.lastChangedAt)],
      ['', cancel, 'actions'],
    ], list.items, empty('No jobs', 'Set-ups of proactive follow-up are jobs, and so are changes of many dead letters or deliveries.'))));
  });
}
