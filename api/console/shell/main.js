// The console's frame: the menu, the search field, the project, and which page is shown.
import { ask, find } from './ask.js';
import { el } from './dom.js';
import { Page } from './page.js';
import { head, noProjects, panel, startTimes } from './pieces.js';
import { startTheme } from './theme.js';

// Pages by groups of the menu: [name, title].
const groups = [
  ['Now', [['overview', 'Overview']]],
  ['Conversations', [['sessions', 'Sessions'], ['deliveries', 'Deliveries'], ['deadletters', 'Dead letters'], ['timers', 'Timers'], ['schedules', 'Schedules']]],
  ['Build', [['flows', 'Flows'], ['endpoints', 'Endpoints'], ['connections', 'Connections'], ['chat', 'Test chat']]],
  ['Operate', [['jobs', 'Jobs'], ['users', 'Users and keys'], ['audit', 'Audit']]],
];
// Pages that the menu does not name, with the page of the menu that they belong to.
const inner = { session: 'sessions', deadletter: 'deadletters', flow: 'flows', connection: 'connections', import: 'flows', receipt: 'sessions', search: '' };

// Pages that show something before there is a project.
const anywhere = ['overview', 'import', 'jobs', 'users', 'audit'];

const titles = new Map(groups.flatMap(([, pages]) => pages));
const view = document.getElementById('view');
const menu = document.getElementById('menu');
const menuButton = document.getElementById('menu-button');
const search = document.querySelector('#search input');
const picker = document.querySelector('#projects select');
const health = document.getElementById('health');

let page = null;
let projectsRead = false;

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;  // typed by hand
  }
}

// The address is #page/segment/...?filter=value.
function place() {
  const [path, query] = location.hash.slice(1).split('?');
  const [name, ...segments] = path.split('/').map(decoded);
  // A session has the address of the list, and its name behind it.
  const known = name === 'sessions' && segments.length === 3 ? 'session' : name;
  return { name: titles.has(known) || known in inner ? known : 'overview', segments, query: new URLSearchParams(query) };
}

async function readProjects() {
  if (projectsRead) return;
  const { items } = await ask('projects');
  if (projectsRead) return;
  picker.append(...items.map((item) => el('option', { value: item._id }, item.name)));
  document.getElementById('projects').hidden = items.length < 2;
  projectsRead = true;
}

async function show() {
  const { name, segments, query } = place();
  const belongs = inner[name] ?? name;
  page?.leave();
  for (const tab of menu.querySelectorAll('a')) {
    if (tab.dataset.page === belongs) tab.setAttribute('aria-current', 'page');
    else tab.removeAttribute('aria-current');
  }
  const mine = page = new Page(name === 'session' ? 'sessions' : name, segments, query);
  delete document.body.dataset.shown;
  await mine.run(async () => {
    await readProjects();
    mine.project = picker.value;
    if (mine.project || anywhere.includes(name)) return import(`../pages/${name}.js`);
    return { default: () => mine.show(head(titles.get(belongs) ?? 'Search'), panel('', noProjects())) };
  });
  if (mine !== page) return;
  document.title = `${view.querySelector('h1')?.textContent ?? 'Console'} · conversed`;
  document.body.dataset.shown = name;
}

function openMenu(open) {
  document.body.classList.toggle('menu', open);
  menuButton.setAttribute('aria-expanded', String(open));
  if (open) menu.querySelector('a').focus();
}

function startMenu() {
  document.getElementById('menu-pages').append(...groups.map(([title, pages]) => el('div', {}, el('h2', {}, title), el('ul', {}, pages.map(([name, text]) =>
    el('li', {}, el('a', { href: '#' + name, 'data-page': name }, text, el('span', { className: 'count', id: 'count-' + name }))))))));
  menuButton.addEventListener('click', () => openMenu(!document.body.classList.contains('menu')));
  view.addEventListener('click', () => openMenu(false));
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && document.body.classList.contains('menu')) {
      openMenu(false);
      menuButton.focus();
    }
    if (event.key === '/' && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });
}

function startSearch() {
  document.getElementById('search').addEventListener('submit', (event) => {
    event.preventDefault();
    if (search.value.trim()) location.hash = 'search?' + new URLSearchParams({ q: search.value.trim() });
  });
}

// The state of the daemon, for users who may see it.
async function watchHealth() {
  try {
    const status = await find('status');
    health.hidden = status === null;
    if (status === null) return;
    const good = status.queue.healthy && status.store.healthy;
    health.className = good ? 'good' : 'bad';
    const daemons = status.members.length;
    health.querySelector('.label').textContent = good ? `healthy${daemons > 1 ? `, ${daemons} daemons` : ''}`
      : `${status.store.healthy ? 'log' : 'store'} failing`;
    document.getElementById('count-deadletters').textContent = status.counts.deadLetters ? status.counts.deadLetters.toLocaleString() : '';
  } catch {
    health.className = 'bad';
    health.querySelector('.label').textContent = 'no answer';
  }
  setTimeout(watchHealth, 10000);
}

async function start() {
  startTheme();
  startTimes();
  startMenu();
  startSearch();
  picker.addEventListener('change', show);
  addEventListener('again', show);
  addEventListener('hashchange', () => {
    openMenu(false);
    view.focus({ preventScroll: true });
    scrollTo(0, 0);
    show();
  });
  watchHealth();
  await show();
}

start();
