// Why something waits: `waits` of the API in the words of people.
import { el } from './dom.js';
import { badge, due, prose, time } from './pieces.js';

// The name of each reason, and its color.
const reasons = {
  behindEvents: ['behind earlier events', ''],
  call: ['call without an answer', 'run'],
  asleep: ['asleep', ''],
  question: ['asks the user', ''],
  inboxFull: ['inbox full', 'bad'],
  partitionWithoutOwner: ['partition without a daemon', 'bad'],
  partitionRecovering: ['recovers after a crash', 'wait'],
  shareUsedUp: ['share of workers used up', 'wait'],
  quota: ['quota used up', 'bad'],
  deliveryFailing: ['webhook fails', 'bad'],
  behindOutput: ['behind an earlier output', ''],
  endpointPaused: ['webhook paused', 'bad'],
  quietHours: ['quiet hours', ''],
  storeDown: ['store down', 'bad'],
  logDown: ['log down', 'bad'],
  deadLetter: ['dead letter', 'bad'],
  notDue: ['not due yet', ''],
  sending: ['being sent', 'run'],
  behindJobs: ['behind other jobs', ''],
  event: ['waits for an event', ''],
};

export const reasonBadge = (name) => badge(...(reasons[name] ?? [name, '']));

// For filters: [value, text].
export const reasonChoices = (names) => [['', 'any'], ...names.map((name) => [name, reasons[name][0]])];

// The first reason of a row of a list, which is its own one. The tooltip has the rest.
export function waitsFor({ waits }) {
  if (!waits?.length) return null;
  const shown = reasonBadge(waits[0].reason);
  shown.title = waits.map(({ subject }) => subject).join('\n');
  return shown;
}

export const since = (wait) => [wait.since ? [' It began ', time(wait.since), '.'] : null,
  wait.expectedAt ? [' Expected: ', due(wait.expectedAt), '.'] : null];

// Each reason with its subject and what to do.
export const why = (waits) => (waits ?? []).map((wait) => el('div', { className: `why ${reasons[wait.reason]?.[1]}` },
  el('p', {}, reasonBadge(wait.reason), ' ', el('strong', {}, wait.subject), since(wait)),
  el('p', { className: 'soft' }, prose(wait.remedy))));
