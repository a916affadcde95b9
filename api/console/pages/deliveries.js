// Outputs that wait for their webhook.
import { act, ask, at } from '../shell/ask.js';
import { button, choice, confirmed, due, empty, field, filters, head, link, number, pages, panel, say, sessionLink, time } from '../shell/pieces.js';
import { reasonChoices, waitsFor } from '../shell/reasons.js';

export default async function deliveries(page) {
  const values = Object.fromEntries(page.query);
  const { items: endpoints } = await ask('endpoints', { projectId: page.project }, page.signal);
  const retry = (item) => button('Try now', async () => {
    await act(at('deliveries', item._id, 'retry'));
    say('It is due now.');
    page.again();
  });
  const drop = (item) => button('Drop', async () => {
    if (!await confirmed('Drop this delivery? Its output is never sent.', 'Drop')) return;
    await act(at('deliveries', item._id, 'drop'));
    say('Dropped.');
    page.again();
  }, 'danger');
  const list = await pages([
    ['Output', (item) => link(`output ${item.seq}`, 'receipt', item._id), 'brief'],
    ['User', (item) => sessionLink(item)],
    ['Session', (item) => item.sessionId],
    ['Endpoint', (item) => item.endpoint],
    ['Waits for', waitsFor],
    ['Failed tries', (item) => (item.state === 'behind' ? null : number(item.attempts)), 'number'],
    ['Created', (item) => time(item.createdAt)],
    ['Next try', ({ waits: [wait] }) => due(wait?.expectedAt)],
    ['', (item) => [retry(item), ' ', drop(item)], 'actions'],
  ], empty('No deliveries wait', 'Every output has reached its webhook.'),
  (after) => ask('deliveries', { projectId: page.project, ...values, after }, page.signal));
  page.show(head('Deliveries'),
    filters(page, choice('Endpoint', 'URLToken', [['', 'all'], ...endpoints.map((item) => [item.URLToken, item.name])], values.URLToken),
      choice('Waits for', 'reason', reasonChoices(['deliveryFailing', 'endpointPaused', 'sending', 'behindOutput', 'partitionWithoutOwner',
        'partitionRecovering']), values.reason),
      field('Older than', 'olderThan', values.olderThan, '20m')), panel('', list));
}
