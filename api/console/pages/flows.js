// The Flows of a project.
import { ask } from '../shell/ask.js';
import { code, empty, head, link, number, panel, table } from '../shell/pieces.js';

export default async function flows(page) {
  const { items } = await ask('flows', { projectId: page.project }, page.signal);
  page.show(head('Flows'), panel('', table([
    ['Flow', (item) => link(item.name, 'flow', item._id)],
    ['Version', (item) => number(item.version), 'number'],
  ], items, empty('No Flows yet', [code('conversectl import FILE'), ' brings a project with its Flows.']))));
}
