// Imports a bundle: its file, the plan of what would change, and then the import.
import { act } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, button, code, head, number, panel, table } from '../shell/pieces.js';

const kinds = { new: ['new', 'good'], changed: ['changed', 'run'], leftOver: ['left over', 'wait'], deleted: ['deleted', 'bad'] };

const findings = (title, found) => (found.length === 0 ? null : panel(title, table([
  ['Line', (item) => number(item.line), 'number'],
  ['Where', (item) => item.path],
  ['What', (item) => item.message],
], found, '')));

const inUse = (title, usages) => (usages.length === 0 ? null : panel(title, table([
  ['Part', (item) => item.part],
  ['Name', (item) => item.name],
  ['Used by', (item) => item.text],
], usages, '')));

function planned({ plan, usages, warnings, isComplete }) {
  const changes = plan.filter(({ change }) => change !== 'unchanged');
  const waiting = changes.flatMap(({ name, waiting: nodes }) => nodes.map((node) => ({ name, ...node })));
  return [
    panel('Changes', table([
      ['Change', (item) => badge(...kinds[item.change])],
      ['Part', (item) => item.part],
      ['Name', (item) => item.name],
    ], changes, 'The import would change nothing')),
    waiting.length === 0 ? null : panel('Sessions that wait in changed Flows', table([
      ['Flow', (item) => item.name],
      ['Node', (item) => code(item.node)],
      ['Sessions', (item) => (isComplete ? '' : 'at least ') + number(item.sessions), 'number'],
      ['After the import', (item) => (item.stays ? 'wait on' : 'start the Flow again')],
    ], waiting, '')),
    inUse('The import would be refused', usages),
    findings('Warnings', warnings),
  ];
}

// The names of `${NAME}` in the text; `$${` stands for itself.
const variables = (text) => [...new Set([...text.matchAll(/(?<!\$)\$\{([A-Za-z_]\w*)\}/g)].map(([, name]) => name))];

export default async function importing(page) {
  const result = el('div', { 'aria-live': 'polite' });
  const values = el('div', { className: 'filters' });
  let changes = 0;
  const show = (...parts) => result.replaceChildren(...parts.flat().filter((part) => part !== null));
  // The plan is of another bundle, also one that is under way.
  const forget = () => {
    ++changes;
    show();
  };
  const text = el('textarea', { name: 'text', rows: 14, spellcheck: false, oninput: () => changed() });
  const file = el('input', { type: 'file', accept: '.yaml,.yml,.json', onchange: async () => {
    text.value = await file.files[0]?.text() ?? '';
    changed();
  } });
  const prune = el('input', { type: 'checkbox', name: 'prune', onchange: forget });

  function changed() {
    const known = new Map([...values.querySelectorAll('input')].map(({ name, value }) => [name, value]));
    values.replaceChildren(...variables(text.value).map((name) => el('label', {}, name,
      el('input', { type: 'password', name, value: known.get(name) ?? '', autocomplete: 'new-password', oninput: forget }))));
    forget();
  }

  // Null if the bundle is refused; shows why, unless the answer is of no use any more.
  const send = async (path, bundle, isOfUse = () => true) => {
    try {
      return await act(path, bundle);
    } catch (error) {
      const { problems, warnings, usages } = error.details ?? {};
      if (!problems && !usages) throw error;
      if (isOfUse()) show(usages ? inUse('The import was refused', usages) : [findings('Problems', problems), findings('Warnings', warnings)]);
      return null;
    }
  };
  const run = async (bundle) => {
    const report = await send('import', bundle);
    if (report === null) return;
    show(panel(`Imported ${report.project.name}`, table([
      ['Endpoint', (item) => item.name],
      ['URLToken', (item) => code(item.urlToken)],
    ], report.endpoints, 'The bundle has no Endpoint'), el('p', {}, button('Show the Flows', () => {
      location.hash = 'flows';
      location.reload();  // the project may be new
    }))));
  };
  const plan = async () => {
    forget();
    const asked = changes;
    const environment = Object.fromEntries([...values.querySelectorAll('input')].filter(({ value }) => value).map(({ name, value }) => [name, value]));
    const bundle = { file: file.files[0]?.name ?? 'bundle.yaml', text: text.value, prune: prune.checked, environment };
    const isOfUse = () => asked === changes;
    const found = await send('import?dryRun=true', bundle, isOfUse);
    if (found && isOfUse()) show(planned(found), found.usages.length ? null : el('p', {}, button('Import', () => run(bundle), 'main')));
  };

  page.show(head('Import a bundle'), panel('', el('div', { className: 'filters' }, el('label', {}, 'File', file),
    el('label', { className: 'check' }, prune, 'Delete the parts that the bundle does not name')),
  el('label', { className: 'text' }, 'Bundle', text), values, el('p', {}, button('Plan', plan))), result);
}
