// One Flow: its graph with the sessions that stand at each Node, its versions, and the changes
// between two of them, side by side.
import { act, ask, at } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { failureRate, graph } from '../shell/graph.js';
import { badge, button, choice, code, confirmed, facts, filters, head, link, number, panel, say, table, time } from '../shell/pieces.js';

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

const endings = {
  finished: (ramp) => ['finished: all sessions run it', 'good'],
  stopped: (ramp) => [`stopped: all sessions run version ${ramp.stableVersion}`, ''],
  errors: (ramp) => [`taken back: more than ${ramp.maxErrors} % of its Turns failed`, 'bad'],
};
const failed = (failures, turns) => `${number(failures)} of ${number(turns)} Turns`;

// The running ramp, or how the last one ended.
function ramped(ramp, actions) {
  return panel(`Ramp of version ${ramp.version}`, facts([
    ['State', ramp.ending ? badge(...endings[ramp.ending](ramp)) : badge(`${ramp.share} % of the sessions`, 'wait')],
    ['Since', time(ramp.beganAt)],
    ['By', ramp.beganBy],
    ['Ended', ramp.endedAt ? time(ramp.endedAt) : null],
    [`Failed in version ${ramp.version}`, failed(ramp.failures, ramp.turns)],
    [`Failed in version ${ramp.stableVersion}`, failed(ramp.stableFailures, ramp.stableTurns)],
    ['Taken back above', ramp.ending ? null : `${ramp.maxErrors} % failed Turns`],
  ]), ramp.ending ? null : el('p', {}, actions));
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
  const { items, ramp } = await ask(at('flows', id, 'versions'), {}, page.signal);
  const running = ramp?.endedAt === null ? ramp : null;
  const current = items.find((item) => item.share > 0 && item.version !== running?.version).version;
  const version = page.query.get('version') ?? String(current);
  const from = page.query.get('from');
  const [found, earlier, diff] = await Promise.all([
    ask(at('flows', id, 'graph'), { version }, page.signal),
    from ? ask(at('flows', id, 'graph'), { version: from }, page.signal) : null,
    from ? ask(at('flows', id, 'diff'), { from, to: version }, page.signal) : null]);
  const { before, after } = marks(diff);
  const back = (item) => button('Go back to it', async () => {
    if (!await confirmed(`Give version ${item.version} of ${found.name} to all sessions again?`, 'Go back')) return;
    await act(at('flows', id, 'rollback'), { version: item.version });
    say(`Version ${item.version} runs again.`);
    page.filter({});
    page.again();
  }, 'danger');
  const give = (wanted, share) => button(share === 100 ? 'Give it to all' : `Give it to ${share} %`, async () => {
    if (!await confirmed(`Give version ${wanted} of ${found.name} to ${share} % of the sessions?`, 'Give')) return;
    await act(at('flows', id, 'ramp'), { version: wanted, share });
    say(`${share} % of the sessions run version ${wanted} with their next input.`);
    page.again();
  });
  const stop = () => button('Stop', async () => {
    if (!await confirmed(`Take version ${running.version} of ${found.name} back from all sessions?`, 'Take back')) return;
    await act(`${at('flows', id, 'ramp')}?version=${running.version}`, undefined, 'DELETE');
    say(`All sessions run version ${running.stableVersion} with their next input.`);
    page.again();
  }, 'danger');
  const larger = () => [10, 25, 50, 100].filter((share) => share > running.share).flatMap((share) => [give(running.version, share), ' ']);
  const actions = (item) => [button('Compare', () => page.filter({ from: Math.min(item.version, current), version: Math.max(item.version, current) })),
    running ? '' : [' ', give(item.version, 10), ' ', back(item)]];
  const versions = items.map((item) => [String(item.version), `version ${item.version}`]);
  page.show(
    head([link('Flows', 'flows'), ' / ', found.name], badge(found.version === current ? 'in effect' : `version ${found.version}`)),
    filters(page, choice('Show', 'version', versions, version), choice('Compare with', 'from', [['', 'nothing'], ...versions], from)),
    earlier ? el('div', { className: 'halves' }, panel(`Version ${from}`, graph(earlier, before)), panel(`Version ${version}`, graph(found, after)))
      : panel('Graph', graph(found)),
    diff ? panel(`From version ${diff.from} to ${diff.to}`, changes(diff)) : null,
    standing(found),
    ramp ? ramped(ramp, running ? [larger(), stop()] : []) : null,
    panel('Versions', table([
      ['Version', (item) => item.version],
      ['When', (item) => time(item.createdAt)],
      ['By', (item) => item.createdBy],
      ['Equal to', (item) => (item.restoredFrom ? `version ${item.restoredFrom}` : '')],
      ['Sessions', (item) => (item.share ? `${item.share} %` : ''), 'number'],
      ['', (item) => (item.version === current ? 'in effect' : actions(item)), 'actions'],
    ], items, 'None.')));
}
