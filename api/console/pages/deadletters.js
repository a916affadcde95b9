// Events that failed, and outputs that were not delivered: in groups, and the letters of a group.
import { act, ask, at, naming } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, button, choice, confirmed, counted, empty, filters, head, link, number, pages, panel, say, sessionLink, table, time } from '../shell/pieces.js';
import { whereFailed } from '../shell/waiting.js';

const types = {
  userMessage: 'message', inject: 'inject', notify: 'notify', followUp: 'follow-up', callResult: 'result of a call', timer: 'end of a sleep',
  timeOut: 'time-out of a question', output: 'output',
};
export const typeOf = ({ type }) => types[type] ?? type;

export function settle(page, item) {
  if (item.state !== 'new') return badge(item.state, item.state === 'replayed' ? 'good' : '');
  const way = (how, done) => async () => {
    await act(at('deadletters', item._id, how));
    say(done);
    page.again();
  };
  return [
    item.replayable ? [button('Run again', way('replay', 'It runs again.')), ' '] : null,
    button('Discard', async () => {
      if (await confirmed('Discard this dead letter? It will never run.', 'Discard')) await way('discard', 'Discarded.')();
    }, 'danger'),
  ];
}

export default async function deadLetters(page) {
  const state = page.query.get('state') ?? 'new';
  const of = { projectId: page.project, state };
  const names = ['reason', 'flow', 'flowVersion', 'node'];
  const chosen = Object.fromEntries(names.flatMap((name) => (page.query.get(name) ? [[name, page.query.get(name)]] : [])));
  const { reason } = chosen;
  const { items: groups } = await ask('deadletters/groups', of, page.signal);
  const named = await naming(page);
  const list = await pages([
    ['When', (item) => time(item.createdAt)],
    ['What', typeOf],
    ['User', (item) => sessionLink(item)],
    ['Session', (item) => item.sessionId],
    ['Reason', (item) => link(item.reason, 'deadletter', item._id)],
    ['', (item) => settle(page, item), 'actions'],
  ], state === 'new' ? empty('No dead letters', 'Every event has had its effects.') : empty('None'),
  async (after) => named(await ask('deadletters', { ...of, ...chosen, after }, page.signal)));
  const partsOf = (item) => Object.fromEntries(names.flatMap((name) => (item[name] ? [[name, String(item[name])]] : [])));
  const isOpen = (item) => JSON.stringify(partsOf(item)) === JSON.stringify(chosen);
  const all = (item, how, done) => async () => {
    const what = counted(item.count, 'dead letter');
    if (!await confirmed(how === 'replay' ? `Run ${what} again? The page Jobs shows the progress.` : `Discard ${what}? They will never run. The page Jobs shows the progress.`, done)) return;
    await act(`${at('deadletters', how)}?${new URLSearchParams({ ...(page.project ? { projectId: page.project } : {}), ...partsOf(item) })}`);
    say('The job has begun.');
    page.again();
  };
  const open = (item) => [
    button(isOpen(item) ? 'Show all' : 'Show these', () => page.filter(isOpen(item) ? { state } : { state, ...partsOf(item) })), ' ',
    ...(state === 'new' ? [button('Run all again', all(item, 'replay', 'Run all again')), ' ',
      button('Discard all', all(item, 'discard', 'Discard all'), 'danger')] : []),
  ];
  page.show(head('Dead letters'),
    filters(page, choice('State', 'state', [['new', 'new'], ['replayed', 'replayed'], ['discarded', 'discarded']], state)),
    groups.length > 0 ? panel('By reason', table([
      ['Count', (item) => number(item.count), 'number'],
      ['Reason', (item) => item.reason],
      ['Where', (item) => whereFailed(item) ?? (item.kind === 'output' ? 'its webhook' : '')],
      ['First', (item) => time(item.first)],
      ['Last', (item) => time(item.last)],
      ['', open, 'actions many'],
    ], groups, '')) : null,
    panel(reason ? ['With this reason: ', el('q', {}, reason)] : '', list),
    el('p', { className: 'soft small' }, 'An event that runs again comes behind the events that its session has accepted meanwhile. The result of a call and a timer can only be discarded: nothing waits for them any more. The groups count the newest 20,000 dead letters of the project, and are at most 200.'));
}
