// The sessions of a project, the newest first.
import { ask } from '../shell/ask.js';
import { badge, empty, head, number, pages, panel, sessionLink, time } from '../shell/pieces.js';

export default async function sessions(page) {
  const list = await pages([
    ['User', (item) => sessionLink(item)],
    ['Session', (item) => item.sessionId],
    ['Endpoint', (item) => item.endpoint],
    ['State', (item) => badge(item.state, item.state === 'busy' ? 'run' : '')],
    ['Inbox', (item) => number(item.inboxSize), 'number'],
    ['Outputs', (item) => number(item.outputs), 'number'],
    ['Last activity', (item) => time(item.lastActivityAt)],
  ], empty('No conversations yet', 'Send a message with the test chat, or POST it to an Endpoint.'),
  (after) => ask('sessions', { projectId: page.project, after }, page.signal));
  page.show(head('Sessions'), panel('', list));
}
