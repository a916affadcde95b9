// The management console: one page that requests the management routes, with the credentials that
// the browser has asked its user for. It inserts all values as text, never as markup.

const view = document.getElementById('view');
const question = document.getElementById('question');
const projectPicker = document.querySelector('#projects select');

// Makes an element with its properties and children. Leaves out null children.
function el(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

// The URL of the management routes, without credentials in the page's address.
const routes = location.origin + location.pathname.replace(/[^/]*$/, '');

class Refused extends Error {}

// Requests a management route. Throws the daemon's error message.
async function ask(path, parameters = {}, options = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  let answer;
  try {
    answer = await fetch(routes + path + (query.size ? '?' + query : ''), options);
  } catch {
    throw new Refused('The daemon does not answer. Is it running?');
  }
  const text = await answer.text();
  let body = null;
  try {
    body = text ? JSON.parse(text) : null;
  } catch {
    // A proxy or another program answered, not the daemon.
  }
  if (!answer.ok) throw new Refused(body?.detail ?? `The answer was ${answer.status}.`);
  return body;
}

const act = (path, body) =>
  ask(path, {}, {
    method: 'POST',
    headers: body ? { 'Content-Type': 'application/json' } : {},
    body: body ? JSON.stringify(body) : undefined,
  });

function confirmed(text, action) {
  question.querySelector('p').textContent = text;
  question.querySelector('button.danger').textContent = action;
  question.returnValue = 'no';
  question.showModal();
  return new Promise((resolve) => {
    question.addEventListener('close', () => resolve(question.returnValue === 'yes'), { once: true });
  });
}

// --- Pieces -------------------------------------------------------------------------------------

const number = (value) => (value === null ? 'unknown' : value.toLocaleString());
const percent = (value) => `${Math.round(value)} %`;

function time(seconds) {
  if (!seconds) return '';
  const at = new Date(seconds * 1000);
  return el('time', { dateTime: at.toISOString(), title: at.toString() }, at.toLocaleString());
}

function duration(seconds) {
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const first = units.findIndex(([size]) => seconds >= size);
  if (first < 0) return '0 s';
  return units.slice(first, first + 2).map(([size, name], i) => {
    const left = i === 0 ? seconds : seconds % units[first][0];
    return `${Math.floor(left / size)} ${name}`;
  }).join(' ');
}

// Columns are [title, cell of an item, class].
function table(columns, items, nothing) {
  if (items.length === 0) return el('p', { className: 'quiet' }, nothing);
  return el('table', {},
    el('thead', {}, el('tr', {}, columns.map(([title, , name]) =>
      el('th', { scope: 'col', className: name ?? '' }, title)))),
    el('tbody', {}, items.map((item) => el('tr', {}, columns.map(([, cell, name]) =>
      el('td', { className: name ?? '' }, cell(item) ?? ''))))));
}

function figures(pairs) {
  return el('dl', { className: 'figures' }, pairs.map(([name, value, className]) =>
    el('div', {}, el('dt', {}, name), el('dd', { className: className ?? '' }, value))));
}

const json = (value) => el('pre', {}, JSON.stringify(value, null, 2));

function button(label, run, className = '') {
  return el('button', {
    type: 'button',
    className,
    onclick: async (event) => {
      event.target.disabled = true;
      try {
        await run();
      } catch (error) {
        complain(error);
      } finally {
        event.target.disabled = false;
      }
    },
  }, label);
}

function complain(error) {
  if (!(error instanceof Refused)) console.error(error);
  view.querySelector('.alert')?.remove();
  view.prepend(el('p', { className: 'alert', role: 'alert' },
    error instanceof Refused ? error.message : 'This page has failed: ' + error.message));
}

// Shows a list page by page. `more` requests the page after `after`.
async function list(heading, columns, nothing, more, before = null) {
  const items = [];
  const render = (next) => view.replaceChildren(
    el('h2', {}, heading), ...(before ? [before] : []), table(columns, items, nothing),
    next ? el('p', { className: 'more' }, button('More', () => load(next))) : '');
  const load = async (after) => {
    const page = await more(after);
    items.push(...page.items);
    render(page.next);
  };
  await load(null);
}

const project = () => ({ projectId: projectPicker.value });
const link = (text, ...path) => el('a', { href: '#' + path.map(encodeURIComponent).join('/') }, text);

// --- Views --------------------------------------------------------------------------------------

let lastStatus = null;

async function overview() {
  const status = await ask('status');
  const now = performance.now();
  const passed = lastStatus ? (now - lastStatus.at) / 1000 : 0;
  const rate = (name) => (passed > 0
    ? number(Math.max(0, Math.round((status.counts[name] - lastStatus.counts[name]) / passed)))
    : '…');
  const shown = [
    ['Log', status.queue.healthy ? 'healthy' : 'failing', status.queue.healthy ? 'good' : 'bad'],
    ['Store', status.store.healthy ? 'healthy' : 'failing', status.store.healthy ? 'good' : 'bad'],
    ['Lag, events', number(status.queue.lag)],
    ['Accepted a second', rate('appended')],
    ['Committed a second', rate('sessionCommits')],
    ['In inboxes', number(status.counts.inInboxes)],
    ['Calls and timers pending', number(status.counts.pendingCalls)],
    ['Deliveries pending', number(status.counts.pendingDeliveries)],
    ['Dead letters', number(status.counts.deadLetters), status.counts.deadLetters > 0 ? 'bad' : ''],
    ['Clients that wait', number(status.counts.waitingForAnswers)],
  ];
  lastStatus = { at: now, counts: status.counts };
  view.replaceChildren(
    el('h2', {}, 'Overview'), figures(shown), el('h3', {}, 'Partitions'),
    table([
      ['Partition', (item) => number(item.partition)],
      ['First', (item) => number(item.first), 'number'],
      ['Committed', (item) => number(item.committed), 'number'],
      ['End', (item) => number(item.end), 'number'],
      ['Lag', (item) => number(item.lag), 'number'],
      ['Daemon', (item) => item.owner || 'none'],
    ], status.queue.partitions, 'The log can\'t be asked.'),
    el('h3', {}, 'Daemons'),
    table([
      ['Name', (item) => item.name],
      ['Roles', (item) => item.roles.join(', ')],
      ['Version', (item) => item.version],
      ['Last seen', (item) => time(item.seenAt)],
    ], status.members, 'No daemon is known.'),
    el('p', { className: 'quiet' }, `Version ${status.version}, up for ${duration(status.uptime)}.`));
}

const sessionPath = (item) => ['sessions', item.URLToken, item.userId, item.sessionId];

async function sessions() {
  await list('Sessions', [
    ['User', (item) => (item.URLToken ? link(item.userId, ...sessionPath(item)) : item.userId)],
    ['Session', (item) => item.sessionId],
    ['Endpoint', (item) => item.endpoint],
    ['State', (item) => item.state],
    ['Inbox', (item) => number(item.inboxSize), 'number'],
    ['Outputs', (item) => number(item.outputs), 'number'],
    ['Last activity', (item) => time(item.lastActivityAt)],
  ], 'This project has no conversations yet.', (after) => ask('sessions', { ...project(), after }));
}

async function session(URLToken, userId, sessionId) {
  const names = { URLToken, userId, sessionId };
  const shown = await ask('sessions/show', names);
  const reset = async () => {
    if (!await confirmed(`End the conversation of ${userId}? Its context is lost.`, 'End it')) return;
    await act('sessions/reset', names);
    await show();
  };
  view.replaceChildren(
    el('h2', {}, `${userId}, ${sessionId}`),
    figures([['State', shown.state], ['Inbox', number(shown.inboxSize)], ['Version', number(shown.version)]]),
    el('p', {}, 'Last activity: ', time(shown.lastActivityAt), ' ', button('End the conversation', reset, 'danger')),
    el('h3', {}, 'What was said last'),
    table([
      ['Number', (item) => number(item.seq), 'number'],
      ['Text', (item) => item.text],
      ['Data', (item) => (item.data === null ? '' : JSON.stringify(item.data))],
      ['Source', (item) => item.source],
    ], shown.outputs, 'Nothing yet.'),
    el('h3', {}, 'Context'), json(shown.context),
    el('h3', {}, 'Where the Flow stands'), json(shown.flowState),
    el('h3', {}, 'What runs'), json(shown.execution));
}

async function deadLetters(state = 'new') {
  const picker = el('select', { onchange: (event) => { location.hash = 'deadletters/' + event.target.value; } },
    ['new', 'replayed', 'discarded'].map((value) => el('option', { value, selected: value === state }, value)));
  const settle = (item, how, text) => button(text, async () => {
    if (how === 'discard' && !await confirmed('Discard this dead letter? It will never run.', 'Discard')) return;
    await act(`deadletters/${encodeURIComponent(item._id)}/${how}`);
    await show();
  }, how === 'discard' ? 'danger' : '');
  await list('Dead letters', [
    ['When', (item) => time(item.createdAt)],
    ['Type', (item) => item.type],
    ['User', (item) => item.userId],
    ['Session', (item) => item.sessionId],
    ['Reason', (item) => link(item.reason, 'deadletter', item._id)],
    ['', (item) => (item.state === 'new'
      ? el('span', {}, settle(item, 'replay', 'Run again'), ' ', settle(item, 'discard', 'Discard')) : ''), 'actions'],
  ], 'None.', (after) => ask('deadletters', { ...project(), state, after }),
  el('p', { className: 'filter' }, el('label', {}, 'State ', picker)));
}

async function deadLetter(id) {
  view.replaceChildren(el('h2', {}, 'Dead letter'), json(await ask('deadletters/' + encodeURIComponent(id))));
}

async function jobs() {
  const page = await ask('tasks', { ...project(), limit: 100, sort: 'createdAt:desc' });
  const cancel = (item) => button('Cancel', async () => {
    if (!await confirmed(`Cancel ${item.name}? What it has made is undone.`, 'Cancel the job')) return;
    await act(`tasks/${encodeURIComponent(item._id)}/cancel`);
    await show();
  }, 'danger');
  view.replaceChildren(el('h2', {}, 'Jobs'), table([
    ['Job', (item) => item.name],
    ['Status', (item) => el('span', { className: item.status === 'error' ? 'bad' : '' }, item.status)],
    ['Progress', (item) => [
      el('progress', { max: 100, value: item.progress, title: percent(item.progress) }),
      el('div', { className: 'quiet' }, `step ${item.currentStep} of ${item.totalStep}`)]],
    ['Reason', (item) => item.failReason],
    ['Created', (item) => time(item.createdAt)],
    ['Changed', (item) => time(item.lastChangedAt)],
    ['', (item) => (['queued', 'active'].includes(item.status) ? cancel(item) : ''), 'actions'],
  ], page.items, 'None.'));
}

async function schedules() {
  const cancel = (item) => button('Cancel', async () => {
    if (!await confirmed('Cancel this schedule?', 'Cancel it')) return;
    await ask('schedules/' + encodeURIComponent(item._id), {}, { method: 'DELETE' });
    await show();
  }, 'danger');
  await list('Scheduled injects', [
    ['Next', (item) => time(item.dueAt)],
    ['Rule', (item) => (item.cron ? `${item.cron} (${item.timezone})` : 'once')],
    ['User', (item) => item.userId],
    ['Session', (item) => item.sessionId],
    ['Text', (item) => item.text],
    ['Fired', (item) => number(item.fired), 'number'],
    ['', cancel, 'actions'],
  ], 'None.', (after) => ask('schedules', { ...project(), after }));
}

async function timers() {
  const kinds = {
    journey: 'Follow-up of the journey', followUp: 'Follow-up of a Node', sleep: 'Sleep', question: 'Question', schedule: 'Schedule',
  };
  const cancel = (item) => button('Cancel', async () => {
    const question = item.kind === 'question' ? 'Let this question wait for as long as it takes?' : 'Cancel this timer?';
    if (!await confirmed(question, 'Cancel it')) return;
    await ask('timers/' + encodeURIComponent(item._id), {}, { method: 'DELETE' });
    await show();
  }, 'danger');
  await list('Timers', [
    ['Due', (item) => time(item.dueAt)],
    ['Kind', (item) => kinds[item.kind] ?? item.kind],
    ['User', (item) => item.userId],
    ['Session', (item) => item.sessionId],
    ['', (item) => (item.kind === 'sleep' ? '' : cancel(item)), 'actions'],
  ], 'None.', (after) => ask('timers', { ...project(), after }));
}

async function flows() {
  const page = await ask('flows', project());
  view.replaceChildren(el('h2', {}, 'Flows'), table([
    ['Flow', (item) => link(item.name, 'flow', item._id, item.name)],
    ['Version', (item) => number(item.version), 'number'],
  ], page.items, 'This project has no Flow yet: conversectl import FILE.'));
}

async function flow(id, name) {
  const page = await ask(`flows/${encodeURIComponent(id)}/versions`);
  const newest = Math.max(...page.items.map((item) => item.version));
  const changes = el('div', {});
  const diff = (item) => button('Compare with the newest', async () => {
    const found = await ask(`flows/${encodeURIComponent(id)}/diff`, { from: String(item.version), to: String(newest) });
    changes.replaceChildren(el('h3', {}, `From version ${item.version} to ${newest}`), json(found));
    changes.scrollIntoView();
  });
  const back = (item) => button('Go back to it', async () => {
    if (!await confirmed(`Make version ${item.version} of ${name} the newest one again?`, 'Go back')) return;
    await act(`flows/${encodeURIComponent(id)}/rollback`, { version: item.version });
    await show();
  }, 'danger');
  view.replaceChildren(el('h2', {}, name), table([
    ['Version', (item) => number(item.version), 'number'],
    ['When', (item) => time(item.createdAt)],
    ['By', (item) => item.createdBy],
    ['Equal to', (item) => (item.restoredFrom ? `version ${item.restoredFrom}` : '')],
    ['', (item) => (item.version === newest ? 'newest' : el('span', {}, diff(item), ' ', back(item))), 'actions'],
  ], page.items, 'None.'), changes);
}

async function connections() {
  const page = await ask('connections', project());
  view.replaceChildren(el('h2', {}, 'Connections'), table([
    ['Connection', (item) => link(item.name, 'connection', item._id)],
    ['Type', (item) => item.type],
  ], page.items, 'None.'));
}

async function connection(id) {
  const usages = await ask(`connections/${encodeURIComponent(id)}/usages`);
  const nodes = usages.flows.flatMap((used) => used.nodes.map((node) => ({ ...node, flow: used.name, version: used.version })));
  const count = number(usages.sessions.count) + (usages.sessions.isComplete ? '' : ' or more');
  view.replaceChildren(
    el('h2', {}, usages.name),
    el('p', {}, nodes.length === 0 ? 'No Flow uses this Connection.'
      : 'If it is deleted, Turns that reach these Nodes fail there at once; their onError applies.'),
    table([
      ['Flow', (item) => item.flow],
      ['Version', (item) => number(item.version), 'number'],
      ['Node', (item) => item.node],
      ['Type', (item) => item.type],
    ], nodes, ''),
    el('h3', {}, `Sessions that meet it: ${count}`),
    table([
      ['User', (item) => item.userId],
      ['Session', (item) => item.sessionId],
      ['Meets it', (item) => item.meets],
      ['State', (item) => item.state],
      ['Last activity', (item) => time(item.lastActivityAt)],
    ], usages.sessions.items, 'None.'));
}

// --- Which of them is shown ---------------------------------------------------------------------

// Each view has an optional title for the navigation, and its refresh interval in ms.
const views = {
  overview: { run: overview, title: 'Overview', every: 2000 },
  sessions: { run: (...path) => (path.length === 3 ? session(...path) : sessions()), title: 'Sessions' },
  deadletters: { run: deadLetters, title: 'Dead letters' },
  deadletter: { run: deadLetter, parent: 'deadletters' },
  jobs: { run: jobs, title: 'Jobs', every: 1000 },
  schedules: { run: schedules, title: 'Schedules' },
  timers: { run: timers, title: 'Timers' },
  flows: { run: flows, title: 'Flows' },
  flow: { run: flow, parent: 'flows' },
  connections: { run: connections, title: 'Connections' },
  connection: { run: connection, parent: 'connections' },
};

let shows = 0;
let again = null;

async function show() {
  const mine = ++shows;
  clearTimeout(again);
  const [name, ...path] = location.hash.slice(1).split('/').map(decodeURIComponent);
  const current = views[name] ? name : 'overview';
  for (const tab of document.querySelectorAll('nav a')) {
    const is = tab.dataset.view === (views[current].parent ?? current);
    if (is) tab.setAttribute('aria-current', 'page');
    else tab.removeAttribute('aria-current');
  }
  try {
    await views[current].run(...path);
  } catch (error) {
    if (mine === shows) complain(error);
  }
  document.body.dataset.shown = current;
  const { every } = views[current];
  if (mine === shows && every) again = setTimeout(refresh, every);
}

// Does not refresh a hidden page, or a page that the user is working on.
function refresh() {
  if (document.hidden || question.open) again = setTimeout(refresh, 1000);
  else show();
}

async function start() {
  document.getElementById('views').append(...Object.entries(views).filter(([, { title }]) => title)
    .map(([name, { title }]) => el('a', { href: '#' + name, 'data-view': name }, title)));
  try {
    const { items } = await ask('projects');
    projectPicker.append(...items.map((item) => el('option', { value: item._id }, item.name)));
    document.getElementById('projects').hidden = items.length < 2;
  } catch (error) {
    complain(error);
  }
  projectPicker.addEventListener('change', () => { lastStatus = null; show(); });
  addEventListener('hashchange', () => { view.focus(); show(); });
  await show();
}

start();
