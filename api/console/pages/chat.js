// A test chat with an Endpoint, as a user of conversations has it.
import { ask, post } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { button, complain, empty, field, head, json, link, panel } from '../shell/pieces.js';

// The project's Endpoints that have had a session lately.
async function endpoints(page) {
  const { items } = await ask('sessions', { projectId: page.project, limit: 100 }, page.signal);
  return [...new Map(items.filter((item) => item.URLToken).map((item) => [item.URLToken, item.endpoint])).entries()];
}

export default async function chat(page) {
  const known = await endpoints(page);
  const user = `console-${Math.random().toString(36).slice(2, 8)}`;
  const talk = el('ol', { className: 'talk', 'aria-live': 'polite' });
  const beside = el('div', {}, empty('Say something', 'What the session remembers stands here.'));
  const token = el('select', { name: 'token' }, known.map(([value, text]) => el('option', { value }, text)));
  const text = el('input', { name: 'text', 'aria-label': 'Message', placeholder: 'Message', autocomplete: 'off', required: true });
  const who = field('User', 'user', user);
  const bubble = (what, className, meta) => talk.append(el('li', { className: `bubble ${className}` }, what, meta ? el('div', { className: 'meta' }, meta) : null));

  const send = async (event) => {
    event.preventDefault();
    const said = text.value;
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
      beside.replaceChildren(panel('Context', json(shown.context)), panel('Where the Flow stands', json(shown.flowState)),
        el('p', {}, link('Open the session', 'sessions', names.URLToken, names.userId, names.sessionId)));
    } catch (error) {
      if (!page.signal.aborted) complain(document.getElementById('view'), error);
    }
    talk.lastElementChild?.scrollIntoView({ block: 'nearest' });
    text.focus();
  };
  page.show(head('Test chat'), known.length === 0
    ? panel('', empty('No Endpoint is known yet', 'An Endpoint is listed here when it has had its first message.'))
    : el('div', { className: 'two' },
      panel('', el('div', { className: 'filters' }, el('label', {}, 'Endpoint', token), who), talk,
        el('form', { className: 'compose', onsubmit: send }, text, el('button', { className: 'main' }, 'Send'))),
      beside));
}
