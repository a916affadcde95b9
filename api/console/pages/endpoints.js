// The Endpoints of a project, with the state of their webhooks.
import { act, ask, at, find } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { address, badge, button, code, counted, due, empty, head, number, panel, say, table, time } from '../shell/pieces.js';

const rate = ({ posts, failedPercent, perMinute }) => (posts === 0 ? 'none' : `${number(perMinute)} a minute${failedPercent ? `, ${failedPercent} % failed` : ''}`);
const kinds = { works: 'good', fails: 'bad', paused: 'wait' };

export default async function endpoints(page) {
  const { items } = await ask('endpoints', { projectId: page.project }, page.signal);
  // Only failing ones have more to tell.
  const failing = items.filter(({ webhookState }) => ['fails', 'paused'].includes(webhookState));
  const health = new Map(await Promise.all(failing.map(async (item) =>
    [item._id, await find(at('endpoints', item._id, 'health'), {}, page.signal)])));
  const of = (item) => health.get(item._id);
  const resume = (item) => (item.webhookState === 'paused' ? button('Resume', async () => {
    await act(at('endpoints', item._id, 'resume'));
    say('Its deliveries go on.');
    page.again();
  }) : '');
  page.show(head('Endpoints'), panel('', table([
    ['Endpoint', (item) => item.name],
    ['Flow', (item) => item.flow],
    ['URL token', (item) => el('code', { className: 'token', title: item.URLToken }, item.URLToken)],
    ['Webhook', (item) => (item.hasWebhook ? badge(item.webhookState ?? 'set', kinds[item.webhookState]) : 'none')],
    ['POSTs in 5 min', (item) => (item.hasWebhook && item.rate ? rate(item.rate) : '')],
    ['Failing since', (item) => (of(item)?.failingSince ? [time(of(item).failingSince), ', ', counted(of(item).failures, 'try', 'tries')] : null)],
    ['Last failure', (item) => (of(item)?.lastFailureAt ? [of(item).lastError, ', ', time(of(item).lastFailureAt)] : '')],
    ['Next try', (item) => due(of(item)?.nextProbeAt)],
    ['', (item) => [el('a', { href: `${address('sessions')}?URLToken=${item.URLToken}` }, 'Sessions'), ' ',
      item.hasWebhook ? el('a', { href: `${address('deliveries')}?URLToken=${item.URLToken}` }, 'Deliveries') : '', ' ', resume(item)], 'actions'],
  ], items, empty('No Endpoints', [code('conversectl import FILE'), ' brings a project with its Endpoints.']))));
}
