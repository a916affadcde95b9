// Outputs that wait for their webhook.
import { act, ask, at } from '../shell/ask.js';
import { badge, button, choice, confirmed, empty, field, filters, head, link, number, pages, panel, say, sessionLink, time } from '../shell/pieces.js';

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
    ['Output', (item) => link(item.seq, 'receipt', item._id), 'number'],
    ['User', (item) => sessionLink(item)],
    ['Endpoint', (item) => item.endpoint],
    ['State', (item) => badge(item.state, 'wait')],
    ['Failed tries', (item) => number(item.attempts), 'number'],
    ['Since', (item) => time(item.createdAt)],
    ['Next try', (item) => time(item.dueAt)],
    ['', (item) => [retry(item), ' ', drop(item)], 'actions'],
  ], empty('No deliveries wait', 'Every output has reached its webhook.'),
  (after) => ask('deliveries', { projectId: page.project, ...values, after }, page.signal));
  page.show(head('Deliveries'),
    filters(page, choice('Endpoint', 'URLToken', [['', 'all'], ...endpoints.map((item) => [item.URLToken, item.name])], values.URLToken),
      choice('State', 'state', [['', 'all'], ...['due', 'waiting', 'behind', 'paused'].map((name) => [name, name])], values.state),
      field('Older than', 'olderThan', values.olderThan, '20m')), panel('', list));
}
