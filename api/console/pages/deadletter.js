// One dead letter, with its event.
import { act, ask, at, find, naming } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { button, code, counted, facts, head, json, link, number, panel, sessionLink, time } from '../shell/pieces.js';
import { whereFailed } from '../shell/waiting.js';
import { settle, typeOf } from './deadletters.js';

const value = (each) => code(JSON.stringify(each) ?? 'nothing');

function step({ node, type, label, evaluations, changes, call }) {
  return el('li', {}, code(node), ` ${type} `, el('span', { className: 'soft' }, label),
    evaluations.map((each) => el('div', { className: `small ${each.error ? 'bad' : ''}` }, code(each.source), each.error ? `: ${each.error}` : [' = ', value(each.value)])),
    changes.map(({ path, after }) => el('div', { className: 'small' }, code(path), ' ', el('ins', {}, '= ', value(after)))),
    call ? el('div', { className: 'small' }, 'asks for ', value(call)) : null);
}

// Tries the event on the newest version of its Flow, without any effect.
function trial({ flow, flowVersion, nodes, outputs, error, failedAt, waitsAt }) {
  return [
    el('p', {}, error ? ['It fails again', failedAt ? [' at ', code(failedAt)] : null, `: ${error}.`]
      : waitsAt ? ['It runs, and waits at ', code(waitsAt), '.'] : 'It runs to its end.', ` This was ${flow} version ${number(flowVersion)}; nothing was sent or stored.`),
    nodes.length ? el('details', {}, el('summary', {}, counted(nodes.length, 'Node')), el('ol', {}, nodes.map(step))) : null,
    outputs.map((output) => el('div', { className: 'bubble' }, output.text, output.data === null ? null : json(output.data))),
  ];
}

export default async function deadLetter(page) {
  const letter = await ask(at('deadletters', page.path[0]), {}, page.signal);
  const [shown] = (await naming(page))({ items: [letter] }).items;
  const mayReadFlows = await find('flows', { projectId: letter.projectId }, page.signal);
  const tried = el('div', { 'aria-live': 'polite' });
  const tryIt = button('Try without effects', async () =>
    tried.replaceChildren(panel('A try', trial(await act(at('deadletters', letter._id, 'try'), {})))));
  page.show(
    head('Dead letter', mayReadFlows && letter.replayable && !letter.outputSeq ? tryIt : null, settle(page, letter)),
    el('div', { className: 'why bad' }, el('p', {}, letter.reason)),
    tried,
    facts([['When', time(letter.createdAt)], ['What', typeOf(letter)], ['User', sessionLink(shown)], ['Session', letter.sessionId],
      ['Endpoint', shown.endpoint], ['Where', whereFailed(letter)],
      ['Output', letter.outputSeq], ['Webhook', letter.server], ['Failed tries', letter.outputSeq ? letter.attempts : null]]),
    panel('What it says', letter.text ? el('p', {}, letter.text) : null,
      letter.data === null || letter.data === undefined ? (letter.text ? null : el('p', { className: 'soft' }, 'The event has no text and no data.')) : json(letter.data)),
    panel('Ids', el('p', {}, 'Dead letter ', code(letter._id), el('br'), 'Event ',
      letter.eventId ? link(code(letter.eventId), 'receipt', letter.eventId) : 'none', el('br'), 'Trace ', code(letter.traceId))));
}
