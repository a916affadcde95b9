// One Flow: its graph with the sessions that stand at each Node, its versions, and the changes
// between two of them, side by side.
import { act, ask, at } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { failureRate, graph } from '../shell/graph.js';
import { badge, button, choice, code, confirmed, filters, head, link, number, panel, say, table, time } from '../shell/pieces.js';

const kinds = { added: 'good', removed: 'bad', changed: 'wait', moved: '' };
const shown = (value) => (value === null ? el('span', { className: 'soft' }, 'none') : code(typeof value === 'string' ? value : JSON.stringify(value)));

function changes(diff) {
  const side = (name, mark) => (item) => [
    item.node !== null && item.change === (mark === 'del' ? 'removed' : 'added') ? el(mark, {}, code(JSON.stringify(item.node))) : null,
    mark === 'del' && item.oldPath ? code(item.oldPath) : null,
    item.fields.map((each) => el('div', {}, `${each.name}: `, el(mark, {}, shown(each[name])))),
  ];
  return table([
    ['Change', (item) => badge(item.change, kinds[item.change])],
    ['Node', (item) => [item.path ?? 'the Flow', item.type ? el('div', { className: 'soft' }, item.type + (item.id ? ` #${item.id}` : '')) : null]],
    [`Version ${diff.from}`, side('before', 'del')],
    [`Version ${diff.to}`, side('after', 'ins')],
  ], diff.changes, 'The two versions are equal.');
}

function standing(found) {
  const shown = found.nodes.filter((node) => node.sessions > 0 || node.failures > 0)
    .sort((a, b) => b.failures - a.failures || b.sessions - a.sessions);
  return panel(`Sessions and failures in version ${found.version}`, table([
    ['Node', (item) => code(item.node)],
    ['Type', (item) => item.type],
    ['Text', (item) => item.text],
    ['Sessions that wait', (item) => number(item.sessions), 'number'],
    ['Runs', (item) => number(item.runs), 'number'],
    ['Failed', (item) => (item.failures ? badge(`${number(item.failures)}, ${failureRate(item)}`, 'bad') : '0'), 'number'],
  ], shown, 'No session waits in this version, and no Node has failed lately'),
  el('p', { className: 'soft small' }, found.isComplete ? '' : 'Only the newest sessions were counted. ',
    'Runs and failures count the last event of each of the newest sessions.'));
}

// The kinds of changes in both versions, by the addresses of the Nodes there.
function marks(diff) {
  const before = new Map();
  const after = new Map();
  for (const { change, path, oldPath, id } of diff?.changes ?? []) {
    if (change !== 'added') for (const name of [id, oldPath ?? path]) before.set(name, change);
    if (change !== 'removed') for (const name of [id, path]) after.set(name, change);
  }
  return { before, after };
}

export default async function flow(page) {
  const [id] = page.path;
  const { items } = await ask(at('flows', id, 'versions'), {}, page.signal);
  const newest = items[0].version;
  const version = page.query.get('version') ?? String(newest);
  const from = page.query.get('from');
  const [found, earlier, diff] = await Promise.all([
    ask(at('flows', id, 'graph'), { version }, page.signal),
    from ? ask(at('flows', id, 'graph'), { version: from }, page.signal) : null,
    from ? ask(at('flows', id, 'diff'), { from, to: version }, page.signal) : null]);
  const { before, after } = marks(diff);
  const back = (item) => button('Go back to it', async () => {
    if (!await confirmed(`Make version ${item.version} of ${found.name} the newest one again?`, 'Go back')) return;
    await act(at('flows', id, 'rollback'), { version: item.version });
    say(`Version ${item.version} runs again.`);
    page.filter({});
    page.again();
  }, 'danger');
  const versions = items.map((item) => [String(item.version), `version ${item.version}`]);
  page.show(
    head([link('Flows', 'flows'), ' / ', found.name], badge(found.version === newest ? 'newest' : `version ${found.version}`)),
    filters(page, choice('Show', 'version', versions, version), choice('Compare with', 'from', [['', 'nothing'], ...versions], from)),
    earlier ? el('div', { className: 'halves' }, panel(`Version ${from}`, graph(earlier, before)), panel(`Version ${version}`, graph(found, after)))
      : panel('Graph', graph(found)),
    diff ? panel(`From version ${diff.from} to ${diff.to}`, changes(diff)) : null,
    standing(found),
    panel('Versions', table([
      ['Version', (item) => item.version],
      ['When', (item) => time(item.createdAt)],
      ['By', (item) => item.createdBy],
      ['Equal to', (item) => (item.restoredFrom ? `version ${item.restoredFrom}` : '')],
      ['', (item) => (item.version === newest ? 'newest' : [
        button('Compare with the newest', () => page.filter({ from: item.version, version: newest })), ' ', back(item)]), 'actions'],
    ], items, 'None.')));
}
