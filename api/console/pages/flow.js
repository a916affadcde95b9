// One Flow: its versions, and the changes between two of them.
import { act, ask, at } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, button, code, confirmed, head, link, panel, say, table, time } from '../shell/pieces.js';

const kinds = { added: 'good', removed: 'bad', changed: 'wait', moved: '' };
const shown = (value) => (value === null ? el('span', { className: 'soft' }, 'none') : code(typeof value === 'string' ? value : JSON.stringify(value)));

function changes(diff) {
  const fields = (item) => [
    item.oldPath ? el('div', {}, 'was ', code(item.oldPath)) : null,
    item.fields.map((each) => el('div', {}, `${each.name}: `, el('del', {}, shown(each.before)), ' → ', el('ins', {}, shown(each.after)))),
    item.node === null ? null : code(JSON.stringify(item.node)),
  ];
  return table([
    ['Change', (item) => badge(item.change, kinds[item.change])],
    ['Node', (item) => [item.path ?? 'the Flow', item.type ? el('div', { className: 'soft' }, item.type + (item.id ? ` #${item.id}` : '')) : null]],
    ['What', fields],
  ], diff.changes, 'The two versions are equal.');
}

export default async function flow(page) {
  const [id] = page.path;
  const { items } = await ask(at('flows', id, 'versions'), {}, page.signal);
  const newest = items[0].version;
  const definition = await ask(at('flows', id, 'definition'), {}, page.signal);
  const back = (item) => button('Go back to it', async () => {
    if (!await confirmed(`Make version ${item.version} of ${definition.name} the newest one again?`, 'Go back')) return;
    await act(at('flows', id, 'rollback'), { version: item.version });
    say(`Version ${item.version} runs again.`);
    page.again();
  }, 'danger');
  const from = page.query.get('from');
  const to = page.query.get('to') ?? String(newest);
  const diff = from ? await ask(at('flows', id, 'diff'), { from, to }, page.signal) : null;
  page.show(
    head([link('Flows', 'flows'), ' / ', definition.name], badge(`version ${newest}`)),
    diff ? panel(`From version ${diff.from} to ${diff.to}`, changes(diff)) : null,
    panel('Versions', table([
      ['Version', (item) => item.version, 'number'],
      ['When', (item) => time(item.createdAt)],
      ['By', (item) => item.createdBy],
      ['Equal to', (item) => (item.restoredFrom ? `version ${item.restoredFrom}` : '')],
      ['', (item) => (item.version === newest ? 'newest' : [
        button('Compare with the newest', () => page.filter({ from: item.version, to: newest })), ' ', back(item)]), 'actions'],
    ], items, 'None.')));
}
