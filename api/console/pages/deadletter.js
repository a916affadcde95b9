// One dead letter, with its event.
import { ask, at } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { code, facts, head, json, link, panel, time } from '../shell/pieces.js';
import { settle } from './deadletters.js';

export default async function deadLetter(page) {
  const letter = await ask(at('deadletters', page.path[0]), {}, page.signal);
  page.show(
    head('Dead letter', settle(page, letter)),
    el('div', { className: 'why' }, el('p', {}, letter.reason)),
    facts([['When', time(letter.createdAt)], ['Type', letter.type], ['User', letter.userId], ['Session', letter.sessionId],
      ['Where', letter.flow ? `${letter.flow} ${letter.flowVersion}, ${letter.node ?? 'before its first Node'}` : null],
      ['Output', letter.outputSeq], ['Webhook', letter.server], ['Failed tries', letter.outputSeq ? letter.attempts : null]]),
    panel('What it says', letter.text ? el('p', {}, letter.text) : null,
      letter.data === null || letter.data === undefined ? (letter.text ? null : el('p', { className: 'soft' }, 'The event has no text and no data.')) : json(letter.data)),
    panel('Ids', el('p', {}, 'Dead letter ', code(letter._id), el('br'), 'Event ',
      letter.eventId ? link(code(letter.eventId), 'receipt', letter.eventId) : 'none', el('br'), 'Trace ', code(letter.traceId))));
}
