// A Flow as a drawing. dagre places boxes and arrows.
import { Graph, layout } from '../vendor/dagre.esm.js';
import { el, svg } from './dom.js';

const charWidth = 7;
const longest = 30;

const cut = (text) => (text.length > longest ? text.slice(0, longest - 1) + '…' : text);

function place({ nodes, arrows }) {
  const drawn = new Graph({ multigraph: true });
  drawn.setGraph({ rankdir: 'TB', nodesep: 28, ranksep: 38, marginx: 12, marginy: 12 });
  drawn.setDefaultEdgeLabel(() => ({}));
  const used = new Set(arrows.flatMap(({ from, to }) => [from, to]));
  for (const name of ['start', 'done']) {
    if (used.has(name)) drawn.setNode(name, { width: 64, height: 30 });
  }
  for (const node of nodes) {
    const text = Math.max(node.type.length + 4, cut(node.text).length);
    drawn.setNode(node.name, { width: Math.max(90, text * charWidth + 28), height: node.text ? 50 : 34, node });
  }
  arrows.forEach(({ from, to, way, waits }, i) =>
    drawn.setEdge(from, to, { way, waits, width: way.length * charWidth, height: way ? 18 : 0, labelpos: 'c' }, String(i)));
  layout(drawn);
  return drawn;
}

function box({ x, y, width, height, node }, name, change) {
  if (!node) {
    return svg('g', { class: 'end', transform: `translate(${x - width / 2} ${y - height / 2})` },
      svg('rect', { width, height, rx: height / 2 }),
      svg('text', { x: width / 2, y: height / 2 + 5, 'text-anchor': 'middle' }, name === 'done' ? 'end' : 'start'));
  }
  // Ends a little behind the box, so that a long text stays in the drawing.
  const pill = (kind, text, y) => {
    const wide = text.length * charWidth + 14;
    const x = width + 8 - wide / 2;
    return [svg('rect', { class: kind, x: x - wide / 2, y: y - 10, width: wide, height: 20, rx: 10 }),
      svg('text', { class: kind, x, y: y + 4.5, 'text-anchor': 'middle' }, text)];
  };
  const classes = ['node', node.sessions ? 'stands' : '', change ?? ''].filter(Boolean).join(' ');
  return svg('g', { class: classes, transform: `translate(${x - width / 2} ${y - height / 2})` },
    svg('title', {}, `${node.node}: ${node.type} ${node.text}${change ? `, ${change}` : ''}`),
    svg('rect', { width, height, rx: 8 }),
    svg('text', { x: 12, y: 21, class: 'type' }, node.type),
    node.text ? svg('text', { x: 12, y: 39, class: 'text' }, cut(node.text)) : null,
    node.sessions ? pill('count', node.sessions.toLocaleString(), 0) : null,
    node.failures ? pill('failed', failureRate(node), height) : null);
}

function arrow({ points, way, waits, x, y }, version) {
  const line = points.map((point, i) => `${i === 0 ? 'M' : 'L'}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join('');
  return svg('g', { class: 'arrow' }, svg('path', { d: line, class: waits ? 'waits' : '', 'marker-end': `url(#tip-${version})` }),
    way ? svg('text', { x, y: y + 4, 'text-anchor': 'middle' }, way) : null);
}

export const failureRate = ({ failures, runs }) => `${Math.max(1, Math.round((failures / Math.max(runs, failures)) * 100))} %`;

// `found` is the answer of flows/{flowId}/graph. `changes` has the kinds of changes by the Nodes'
// addresses.
export function graph(found, changes = new Map()) {
  const drawn = place(found);
  const { width, height } = drawn.graph();
  const scale = 0.85;
  const frame = el('div', { className: 'graph', tabIndex: 0, role: 'region', 'aria-label': `Graph of ${found.name}, version ${found.version}` },
    svg('svg', { viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`, width: Math.ceil(width * scale), height: Math.ceil(height * scale),
      role: 'img', 'aria-label': `${found.nodes.length} Nodes; the table below has their sessions and failures` },
    svg('defs', {}, svg('marker', { id: `tip-${found.version}`, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: 'auto' },
      svg('path', { d: 'M0 0L8 4L0 8z' }))),
    drawn.edges().map((edge) => arrow(drawn.edge(edge), found.version)),
    drawn.nodes().map((name) => box(drawn.node(name), name, changes.get(drawn.node(name).node?.node)))));
  // Shows the start first.
  requestAnimationFrame(() => { frame.scrollLeft = drawn.node('start').x * scale - frame.clientWidth / 2; });
  return frame;
}
