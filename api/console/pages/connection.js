// Where a Connection is used: Nodes, and sessions that meet them.
import { ask, at, naming } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, code, head, link, number, panel, sessionLink, table, time } from '../shell/pieces.js';

export default async function connection(page) {
  const [usages, named] = await Promise.all([ask(at('connections', page.path[0], 'usages'), {}, page.signal), naming(page)]);
  const nodes = usages.flows.flatMap((used) => used.nodes.map((node) => ({ ...node, flow: used })));
  const { items: sessions, count, isComplete } = usages.sessions;
  page.show(
    head([link('Connections', 'connections'), ' / ', usages.name]),
    panel('Nodes', el('p', { className: 'soft' }, nodes.length === 0 ? 'No Flow uses this Connection.'
      : ['If it is deleted, Turns that reach these Nodes fail there at once; their ', code('onError'), ' applies.']),
    nodes.length ? table([
      ['Flow', (item) => link(item.flow.name, 'flow', item.flow._id)],
      ['Version', (item) => number(item.flow.version), 'number'],
      ['Node', (item) => code(item.node)],
      ['Type', (item) => item.type],
    ], nodes, '') : null),
    sessions === null ? null : panel(`Sessions that meet it: ${number(count)}${isComplete ? '' : ' or more'}`, table([
      ['User', (item) => sessionLink(item)],
      ['Session', (item) => item.sessionId],
      ['Endpoint', (item) => item.endpoint],
      ['Meets it', (item) => (item.meets === 'ahead' ? 'on its way' : 'when its Flow begins again')],
      ['State', (item) => badge(item.state)],
      ['Last activity', (item) => time(item.lastActivityAt)],
    ], named({ items: sessions }).items, 'None')));
}
