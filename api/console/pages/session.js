// One session: what was said, and what the conversation remembers.
import { act, ask } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, button, confirmed, empty, facts, head, json, number, panel, say, time } from '../shell/pieces.js';

function bubble(output) {
  return el('li', { className: 'bubble' }, output.text ?? '',
    output.data === null || output.data === undefined ? null : json(output.data),
    el('div', { className: 'meta' }, `output ${output.seq}, ${output.source}`));
}

export default async function session(page) {
  const [URLToken, userId, sessionId] = page.path;
  const names = { URLToken, userId, sessionId };
  const end = button('End the conversation', async () => {
    if (!await confirmed(`End the conversation of ${userId}? Its context is lost.`, 'End it')) return;
    await act('sessions/reset', names);
    say('The conversation has ended.');
    page.again();
  }, 'danger');
  const shown = await ask('sessions/show', names, page.signal);
  page.show(
    head([userId, ' ', el('span', { className: 'soft' }, sessionId)],
      badge(shown.state, shown.state === 'busy' ? 'run' : ''), end),
    facts([['Last activity', time(shown.lastActivityAt)], ['Began', time(shown.startedAt)], ['In its inbox', number(shown.inboxSize)],
      ['Turns', number(shown.version)]]),
    el('div', { className: 'two' },
      panel('What was said last', shown.outputs.length ? el('ol', { className: 'talk' }, shown.outputs.map(bubble)) : empty('Nothing yet')),
      el('div', {},
        panel('Context', json(shown.context)),
        panel('Where the Flow stands', json(shown.flowState)),
        panel('What runs', shown.execution ? json(shown.execution) : el('p', { className: 'soft' }, 'Nothing. The next event begins a Turn.')))));
}
