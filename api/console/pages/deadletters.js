// Events that failed, and outputs that were not delivered.
import { act, ask, at } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, button, choice, confirmed, empty, filters, head, link, pages, panel, say, time } from '../shell/pieces.js';

export function settle(page, item) {
  if (item.state !== 'new') return badge(item.state, item.state === 'replayed' ? 'good' : '');
  const way = (how, done) => async () => {
    await act(at('deadletters', item._id, how));
    say(done);
    page.again();
  };
  return [
    button('Run again', way('replay', 'It runs again.')), ' ',
    button('Discard', async () => {
      if (await confirmed('Discard this dead letter? It will never run.', 'Discard')) await way('discard', 'Discarded.')();
    }, 'danger'),
  ];
}

export default async function deadLetters(page) {
  const state = page.query.get('state') ?? 'new';
  const list = await pages([
    ['When', (item) => time(item.createdAt)],
    ['Type', (item) => item.type],
    ['User', (item) => item.userId],
    ['Session', (item) => item.sessionId],
    ['Reason', (item) => link(item.reason, 'deadletter', item._id)],
    ['', (item) => settle(page, item), 'actions'],
  ], state === 'new' ? empty('No dead letters', 'Every event has had its effects.') : empty('None'),
  (after) => ask('deadletters', { projectId: page.project, state, after }, page.signal));
  page.show(head('Dead letters'),
    filters(page, choice('State', 'state', [['new', 'new'], ['replayed', 'replayed'], ['discarded', 'discarded']], state)),
    panel('', list), el('p', { className: 'soft small' }, 'An event that runs again comes behind the events that its session has accepted meanwhile.'));
}
