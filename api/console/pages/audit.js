// The audit trail, the newest entries first.
import { ask } from '../shell/ask.js';
import { badge, code, empty, field, filters, head, pages, panel, time } from '../shell/pieces.js';

export default async function audit(page) {
  const actor = page.query.get('actor');
  const operation = page.query.get('operation');
  const about = page.query.get('about');
  const list = await pages([
    ['When', (item) => time(item.at)],
    ['Who', (item) => item.actor ?? 'unknown'],
    ['By', (item) => item.credential],
    ['From', (item) => item.address],
    ['Operation', (item) => item.operation],
    ['Object', (item) => (item.object ? code(item.object) : '')],
    ['User', (item) => item.userId],
    ['Answer', (item) => (item.status === null ? badge('none', 'wait') : badge(item.status, item.status < 300 ? 'good' : 'bad'))],
  ], empty('No entries'), (after) => ask('audit', { actor, operation, about, after }, page.signal));
  page.show(head('Audit trail'),
    filters(page, field('E-mail address', 'actor', actor), field('Operation', 'operation', operation, 'signIn'), field('Id', 'about', about)), panel('', list));
}
