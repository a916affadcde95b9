// The Connections of a project. Their secrets never reach the console.
import { ask } from '../shell/ask.js';
import { empty, head, link, panel, table } from '../shell/pieces.js';

export default async function connections(page) {
  const { items } = await ask('connections', { projectId: page.project }, page.signal);
  page.show(head('Connections'), panel('', table([
    ['Connection', (item) => link(item.name, 'connection', item._id)],
    ['Type', (item) => item.type],
    ['Hosts', (item) => item.hosts.join(', ')],
  ], items, empty('No Connections', 'Flows of this project call no other system with credentials.'))));
}
