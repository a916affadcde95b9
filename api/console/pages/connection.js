// Where a Connection is used: Nodes, and sessions that meet them.
import { ask, at } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, code, head, link, number, panel, table, time } from '../shell/pieces.js';

export default async function connection(page) {
  const usages = await ask(at('connections', page.path[0], 'usages'), {}, page.signal);
  const nodes = usages.flows.flatMap((used) => used.nodes.map((node) => ({ ...node, flow: used })));
  const count = number(usages.sessions.count) + (usages.sessions.isComplete ? '' : ' or more');
  page.show(
    head([link('Connections', 'connections'), ' / ', usages.name]),
    panel('Nodes', el('p', { className: 'soft' }, nodes.length === 0 ? 'No Flow uses this Connection.'
      : 'If it is deleted, Turns that reach these Nodes fail there at once; their onError applies.'),
    nodes.length ? table([
      ['Flow', (item) => item.flow.name],
      ['Version', (item) => number(item.flow.version), 'number'],
      ['Node', (item) => code(item.node)],
      ['Type', (item) => item.type],
    ], nodes, '') : null),
    panel(`Sessions that meet it: ${count}`, table([
      ['User', (item) => item.userId],
      ['Session', (item) => item.sessionId],
      ['Meets it', (item) => item.meets],
      ['State', (item) => badge(item.state)],
      ['Last activity', (item) => time(item.lastActivityAt)],
    ], usages.sessions.items, 'None')));
}
