// The pieces that pages are made of.
import { el, replace } from './dom.js';
import { Refused } from './ask.js';

// --- Values

export const number = (value) => (value === null || value === undefined ? 'unknown' : value.toLocaleString());

// "1 Node", "2 Nodes"
export const counted = (count, one, many = one + 's') => `${number(count)} ${count === 1 ? one : many}`;

export function duration(seconds) {
  if (seconds < 0.01) return `${Math.round(seconds * 10000) / 10} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const first = units.findIndex(([size]) => seconds >= size);
  return units.slice(first, first + 2).map(([size, name], i) => {
    const left = i === 0 ? seconds : seconds % units[first][0];
    return `${Math.floor(left / size)} ${name}`;
  }).filter((text) => !text.startsWith('0 ')).join(' ');
}

const day = 86400;
const whole = { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZoneName: 'short' };

// Relative to now, or with date and zone if it is far away.
function relative(at) {
  const ago = Math.round((Date.now() - at) / 1000);
  if (Math.abs(ago) < 2) return 'now';
  if (Math.abs(ago) >= day) return at.toLocaleString([], whole);
  return ago > 0 ? `${duration(ago)} ago` : `in ${duration(-ago)}`;
}

// A time relative to now; its title is the time itself. Screen readers are not told of each second.
export function time(seconds) {
  if (!seconds) return null;
  const at = new Date(seconds * 1000);
  return el('time', { className: 'relative', dateTime: at.toISOString(), title: at.toString(), 'aria-live': 'off' }, relative(at));
}

// As above, of what comes next. It may be late.
export const due = (seconds) => (seconds && seconds * 1000 <= Date.now() ? 'due' : time(seconds));

// Lets relative times go on.
export function startTimes() {
  setInterval(() => {
    for (const shown of document.querySelectorAll('time.relative')) {
      const text = relative(new Date(shown.dateTime));
      if (shown.textContent !== text) shown.textContent = text;
    }
  }, 1000);
}

// The zone of all times on the page.
export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

// The time of day, with milliseconds if the value has them.
export function clock(seconds) {
  const at = new Date(seconds * 1000);
  const text = at.toLocaleTimeString([], { hour12: false });
  const ms = Number.isInteger(seconds) ? '' : '.' + String(at.getMilliseconds()).padStart(3, '0');
  return el('time', { dateTime: at.toISOString(), title: at.toString() }, text + ms);
}

export const badge = (text, kind = '') => el('span', { className: `badge ${kind}` }, text);
export const code = (text) => el('code', {}, text);
// Text with commands between backticks.
export const prose = (text) => text.split('`').map((part, i) => (i % 2 ? code(part) : part));
export const json = (value) => el('pre', { tabIndex: 0 }, JSON.stringify(value, null, 2));

export const address = (...path) => '#' + path.map(encodeURIComponent).join('/');
export const link = (text, ...path) => el('a', { href: address(...path) }, text);
export const sessionLink = (item, text = item.userId) =>
  (item.URLToken ? link(text, 'sessions', item.URLToken, item.userId, item.sessionId) : text);

// --- Frames

export const head = (title, ...actions) => el('div', { className: 'head' },
  el('h1', {}, title), actions.length ? el('div', { className: 'actions' }, actions) : null);

export const panel = (title, ...children) =>
  el('section', { className: 'panel' }, title ? el('h2', {}, title) : null, children);

export const empty = (title, hint = '') =>
  el('div', { className: 'empty' }, el('strong', {}, title), hint);

export const noProjects = () => empty('No projects yet',
  [code('conversectl import FILE'), ' brings one with its Flows and Endpoints. ', code('conversectl flow new'), ' writes a file to begin with. ', link('Import a bundle', 'import'), ' here.']);

export const loading = () =>
  el('div', { className: 'loading' }, el('span', { className: 'unseen' }, 'Loading'), [1, 2, 3, 4].map(() => el('i')));

function cellOf(item, [title, cell, name]) {
  const content = [cell(item)].flat(Infinity).filter((each) => each !== null && each !== undefined && each !== '');
  return el('td', { role: 'cell', className: name ?? '', 'data-label': title }, content.length ? el('div', {}, content) : null);
}

// Columns are [title, cell of an item, class]. `nothing` is a text, or the result of `empty`. Rows
// of the kind `cards` become cards in a narrow window; those of the kind `dense` stay rows.
export function table(columns, items, nothing, kind = 'cards') {
  if (items.length === 0) return typeof nothing === 'string' ? empty(nothing) : nothing;
  return el('div', { className: 'table', tabIndex: kind === 'dense' ? 0 : null }, el('table', { className: kind, role: 'table' },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, columns.map(([title, , name]) =>
      el(title ? 'th' : 'td', { role: title ? 'columnheader' : 'cell', className: name ?? '' }, title)))),
    el('tbody', { role: 'rowgroup' }, items.map((item) => el('tr', { role: 'row' }, columns.map((column) => cellOf(item, column)))))));
}

export const figures = (pairs, className = '') => el('dl', { className: `figures ${className}` }, pairs.map(([name, value, kind]) =>
  el('div', {}, el('dt', {}, name), el('dd', { className: kind ?? '' }, value))));

// A name of a column and what an item has there, below each other.
export const facts = (pairs) => figures(pairs.filter(([, value]) => value !== null && value !== undefined), 'plain');

// The members of an object: small ones as rows, nested ones as JSON.
export function members(value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return json(value);
  const pairs = Object.entries(value);
  if (pairs.length === 0) return el('p', { className: 'soft' }, 'Empty.');
  return el('dl', { className: 'members' }, pairs.map(([name, each]) => el('div', {}, el('dt', {}, code(name)),
    el('dd', {}, each !== null && typeof each === 'object' ? json(each) : code(JSON.stringify(each))))));
}

export function filters(page, ...fields) {
  const apply = (event) => {
    event?.preventDefault();
    page.filter(Object.fromEntries([...new FormData(form)].filter(([, value]) => value)));
  };
  const form = el('form', { className: 'filters', onsubmit: apply, onchange: apply }, fields);
  return form;
}

export const choice = (label, name, options, value) => el('label', {}, label, el('select', { name },
  options.map(([each, text]) => el('option', { value: each, selected: each === (value ?? '') }, text))));
export const field = (label, name, value, placeholder = '') =>
  el('label', {}, label, el('input', { name, value: value ?? '', placeholder, autocomplete: 'off', spellcheck: false }));
export const check = (label, name, value) =>
  el('label', { className: 'check' }, el('input', { type: 'checkbox', name, value: 'true', checked: value === 'true' }), label);

// --- Actions

const said = document.getElementById('said');
let saidUntil = null;

// Tells the user what has happened.
export function say(text) {
  said.textContent = text;
  clearTimeout(saidUntil);
  saidUntil = setTimeout(() => { said.textContent = ''; }, 5000);
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
export const reason = (error) => (error instanceof Refused ? sentence(error.message) : 'This page has failed: ' + error.message);

// The place of an error: above what the page shows already. With `again` the user can repeat the step.
export function complain(view, error, again = null) {
  if (!(error instanceof Refused)) console.error(error);
  view.querySelector('.alert:not(.live)')?.remove();
  view.prepend(el('div', { className: 'alert', role: 'alert' }, el('p', {}, reason(error)),
    again ? button('Try again', again) : null));
}

export function button(label, run, className = '') {
  return el('button', {
    type: 'button',
    className,
    onclick: async (event) => {
      const pressed = event.currentTarget;
      pressed.disabled = true;
      try {
        await run();
      } catch (error) {
        complain(document.getElementById('view'), error);
      } finally {
        pressed.disabled = false;
      }
    },
  }, label);
}

const question = document.getElementById('question');

export function confirmed(text, action) {
  question.querySelector('p').textContent = text;
  question.querySelector('button.danger').textContent = action;
  question.returnValue = 'no';
  question.showModal();
  return new Promise((resolve) => {
    question.addEventListener('close', () => resolve(question.returnValue === 'yes'), { once: true });
  });
}

const mostEmpty = 10;

// A list that goes on page by page. `more` requests the page after `after`. Returns its element.
export async function pages(columns, nothing, more) {
  const items = [];
  const place = el('div', {});
  const load = async (after) => {
    let next = after;
    // A page may be empty although more follow: the daemon examines a bounded number of rows.
    for (let i = 0; i < mostEmpty; ++i) {
      const page = await more(next);
      items.push(...page.items);
      next = page.next ?? page.nextCursor;
      if (page.items.length > 0 || !next) break;
    }
    replace(place, [table(columns, items, nothing), next ? el('p', { className: 'more' }, button('More', () => load(next))) : null]);
  };
  await load(null);
  return place;
}
