// A test chat with an Endpoint, as a user of conversations has it.
import { ask, at, find, post } from '../shell/ask.js';
import { el, replace } from '../shell/dom.js';
import { code, complain, empty, field, head, json, link, members, panel } from '../shell/pieces.js';
import { why } from '../shell/reasons.js';
import { waterfall } from './receipt.js';
import { standing } from './session.js';

export default async function chat(page) {
  const { items: known } = await ask('endpoints', { projectId: page.project }, page.signal);
  const user = `console-${Math.random().toString(36).slice(2, 8)}`;
  let sent = 0;
  const talk = el('ol', { className: 'talk', 'aria-live': 'polite' });
  const beside = el('div', {}, empty('Say something', 'The receipt of your message, and what the session remembers, stand here.'));
  const token = el('select', { name: 'token' }, known.map((item) => el('option', { value: item.URLToken }, item.name)));
  const text = el('input', { name: 'text', 'aria-label': 'Message', placeholder: 'Message', autocomplete: 'off', required: true });
  const who = field('User', 'user', user);
  const bubble = (what, className, meta) => talk.append(el('li', { className: `bubble ${className}` }, what, meta ? el('div', { className: 'meta' }, meta) : null));

  const send = async (event) => {
    event.preventDefault();
    const said = text.value;
    const mine = ++sent;
    const userId = who.querySelector('input').value;
    const names = { URLToken: token.value, userId, sessionId: `${userId}-chat` };
    text.value = '';
    bubble(said, 'me');
    const began = performance.now();
    try {
      const answer = await post(token.value, { userId, sessionId: names.sessionId, text: said });
      const took = `${Math.round(performance.now() - began)} ms`;
      const outputs = answer?.outputStack ?? [];
      for (const output of outputs) bubble(output.text ?? json(output.data), '', took);
      if (outputs.length === 0) bubble('No answer.', 'soft', took);
      const shown = await ask('sessions/show', names, page.signal);
      const receipt = shown.lastReceipt ? await find(at('receipts', shown.lastReceipt), {}, page.signal) : null;
      if (mine !== sent) return;  // a later message has a newer state
      replace(beside, [why(shown.waits), receipt ? panel(['What happened to it ', link('receipt', 'receipt', receipt._id)], waterfall(receipt)) : null,
        panel('Context', members(shown.context)), standing(shown), el('p', {}, link('Open the session', 'sessions', names.URLToken, names.userId, names.sessionId))]);
    } catch (error) {
      if (!page.signal.aborted) complain(document.getElementById('view'), error);
    }
    talk.lastElementChild?.scrollIntoView({ block: 'nearest' });
    text.focus();
  };
  page.show(head('Test chat'), known.length === 0
    ? panel('', empty('No Endpoints', [code('conversectl import FILE'), ' brings a project with its Endpoints.']))
    : el('div', { className: 'two' },
      panel('', el('div', { className: 'filters' }, el('label', {}, 'Endpoint', token), who), talk,
        el('form', { className: 'compose', onsubmit: send }, text, el('button', { className: 'main' }, 'Send'))),
      beside));
}
