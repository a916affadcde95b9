// The Flows of a project, and a check of all of them.
import { ask, at } from '../shell/ask.js';
import { el } from '../shell/dom.js';
import { badge, button, code, empty, head, link, number, panel, table } from '../shell/pieces.js';

// The problems and warnings of `conversectl flow check`, for the newest versions.
async function check(page, into) {
  const { problems, warnings } = await ask(at('projects', page.project, 'export'), {}, page.signal);
  const found = [...problems.map((each) => ({ ...each, kind: 'error' })), ...warnings.map((each) => ({ ...each, kind: 'warning' }))];
  into.replaceChildren(panel('Findings', table([
    ['Kind', (item) => badge(item.kind, item.kind === 'error' ? 'bad' : 'wait')],
    ['Where', (item) => item.path],
    ['What', (item) => item.message],
  ], found, 'No findings')));
}

export default async function flows(page) {
  const { items } = await ask('flows', { projectId: page.project }, page.signal);
  const findings = el('div');
  page.show(head('Flows', link('Import a bundle', 'import'), items.length ? button('Check the Flows', () => check(page, findings)) : null), panel('', table([
    ['Flow', (item) => link(item.name, 'flow', item._id)],
    ['Version', (item) => number(item.version), 'number'],
  ], items, empty('No Flows yet', [code('conversectl import FILE'), ' brings a project with its Flows.']))), findings);
}
