// Users of the organisation, API keys, management tokens, and OAuth clients.
import { act, ask, at, find } from '../shell/ask.js';
import { badge, button, code, confirmed, empty, head, panel, say, table, time } from '../shell/pieces.js';

export default async function users(page) {
  const [people, keys, tokens, clients] = await Promise.all([find('users', {}, page.signal), ask('apikeys', {}, page.signal),
    ask('tokens', {}, page.signal), find('oauth/clients', {}, page.signal)]);
  const remove = (path, text, word) => button(word, async () => {
    if (!await confirmed(text, word)) return;
    await act(path, null, 'DELETE');
    say('Done.');
    page.again();
  }, 'danger');
  page.show(
    head('Users and keys'),
    people ? panel('Users', table([
      ['E-mail', (item) => item.email],
      ['Name', (item) => (item.name === item.email ? '' : item.name)],
      ['Roles', (item) => item.roles.map((role) => [badge(role), ' '])],
      ['Password', (item) => (item.hasPassword ? 'yes' : 'none')],
      ['Since', (item) => time(item.createdAt)],
    ], people.items, 'None')) : null,
    panel('API keys', table([
      ['Name', (item) => item.name],
      ['User', (item) => item.user],
      ['Since', (item) => time(item.createdAt)],
      ['', (item) => remove(at('apikeys', item._id), `Revoke ${item.name}? Its clients are refused at once.`, 'Revoke'), 'actions'],
    ], keys.items, empty('No API keys', [code('conversectl apikey create --name NAME'), ' makes one.']))),
    panel('Management tokens', table([
      ['Name', (item) => item.name],
      ['User', (item) => item.user],
      ['Scopes', (item) => item.scopes.map((scope) => [badge(scope), ' '])],
      ['Since', (item) => time(item.createdAt)],
      ['Ends', (item) => time(item.expiresAt)],
      ['', (item) => remove(at('tokens', item._id), `Revoke ${item.name}? Its scripts are refused at once.`, 'Revoke'), 'actions'],
    ], tokens.items, empty('No management tokens', [code('conversectl login'), ' makes one, or ', code('conversectl tokens create'), ' for a script.']))),
    clients ? panel('OAuth clients', table([
      ['Name', (item) => item.name],
      ['Id', (item) => code(item._id)],
      ['Since', (item) => time(item.createdAt)],
      ['', (item) => remove(at('oauth', 'clients', item._id), `Remove ${item.name}? Its tokens end.`, 'Remove'), 'actions'],
    ], clients.items, empty('No OAuth clients', [code('conversectl oauth-client add'), ' makes one.']))) : null);
}
