// The sessions of a project, the newest first, by user, Endpoint, state, and words that were said.
import { ask } from '../shell/ask.js';
import { badge, choice, empty, field, filters, head, number, pages, panel, sessionLink, time } from '../shell/pieces.js';
import { reasonChoices, waitsFor } from '../shell/reasons.js';

export default async function sessions(page) {
  const values = Object.fromEntries(page.query);
  const { items: endpoints } = await ask('endpoints', { projectId: page.project }, page.signal);
  const filtered = Object.keys(values).length > 0;
  const list = await pages([
    ['User', (item) => sessionLink(item)],
    ['Session', (item) => item.sessionId],
    ['Endpoint', (item) => item.endpoint],
    ['State', (item) => waitsFor(item) ?? badge(item.state, item.state === 'busy' ? 'run' : '')],
    ['Inbox', (item) => number(item.inboxSize), 'number'],
    ['Outputs', (item) => number(item.outputs), 'number'],
    ['Last activity', (item) => time(item.lastActivityAt)],
  ], filtered ? empty('No session matches', 'More may be older: press More if it is there.')
    : empty('No conversations yet', 'Send a message with the test chat, or POST it to an Endpoint.'),
  (after) => ask('sessions', { projectId: page.project, ...values, after }, page.signal));
  page.show(head('Sessions'),
    filters(page, field('User', 'userId', values.userId, 'the whole id'),
      choice('Endpoint', 'URLToken', [['', 'all'], ...endpoints.map((item) => [item.URLToken, item.name])], values.URLToken),
      choice('State', 'state', [['', 'all'], ['busy', 'busy'], ['idle', 'idle']], values.state),
      choice('Waits for', 'reason', reasonChoices(['call', 'asleep', 'question', 'event', 'inboxFull', 'shareUsedUp', 'quota', 'partitionWithoutOwner',
        'partitionRecovering']), values.reason),
      field('Words that were said', 'text', values.text)),
    panel('', list));
}
