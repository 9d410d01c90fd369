// @ts-check
// What several views are made of.
import { h } from '../element.js';
import { count, plain } from '../words.js';

/** @import { Child, Element, Given } from '../element.js' */
/** @import { Counts, Failure, Waiting } from '../messages.ts' */

/** Outcomes and states by how they are shown. */
const TONES = /** @type {Record<string, string>} */ ({
  completed: 'good',
  timeout: 'warn',
  'harness error': 'warn',
  'task error': 'bad',
  'infrastructure error': 'bad',
  cancelled: 'dim',
  running: 'live',
  preparing: 'live',
  finishing: 'live',
});

/** States in the order in which a session passes them, then outcomes. */
const ORDER = [
  ...['queued', 'preparing', 'ready', 'running', 'finishing', 'ended'],
  ...['completed', 'timeout', 'harness_error', 'task_error', 'infrastructure_error', 'cancelled'],
];

/** @param {string} name of a state or an outcome @param {string} [text] */
export const badge = (name, text = name) => h('span', { class: `badge ${TONES[name] ?? 'dim'}` }, text);

/** @param {Counts | undefined} counts @returns {Given[]} */
export function badges(counts) {
  const known = Object.entries(counts ?? {})
    .filter(([, n]) => n > 0)
    .sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
  if (known.length === 0) return ['–'];
  return known.map(([name, n]) =>
    badge(name.replaceAll('_', ' '), `${count(n)} ${name.replaceAll('_', ' ')}`),
  );
}

/**
 * A table with a caption that readers hear.
 * @param {string} caption @param {string[]} head @param {Given[][]} rows @param {string} [none] said where there is no row
 */
export const table = (caption, head, rows, none = 'none') =>
  h(
    'div',
    { class: 'scroll' },
    h(
      'table',
      {},
      h('caption', {}, caption),
      h('thead', {}, h('tr', {}, ...head.map((title) => h('th', { scope: 'col' }, title)))),
      h(
        'tbody',
        {},
        rows.length === 0
          ? h('tr', {}, h('td', { colspan: head.length, class: 'dim' }, none))
          : rows.map((cells) => h('tr', {}, ...cells.map((cell) => h('td', {}, cell)))),
      ),
    ),
  );

/** @param {[string, Given | Given[]][]} rows */
export const facts = (rows) =>
  h(
    'dl',
    {},
    ...rows.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, ...[value].flat()))),
  );

/** @param {string} title @param {...(Given | Given[])} children */
export const section = (title, ...children) => h('section', {}, h('h2', {}, title), ...children);

/** @param {string} title @param {boolean} open @param {...(Given | Given[])} children */
export const fold = (title, open, ...children) =>
  h('details', { open }, h('summary', {}, title), ...children);

/** @param {string} to a route of routes.js @param {string} text */
export const link = (to, text) => h('a', { href: to }, text);

/** @param {Failure | undefined} failure @returns {Given[]} */
export function failureText(failure) {
  if (failure === undefined) return ['–'];
  const where = plain(failure.boundary, 'BOUNDARY_');
  return [
    h('strong', {}, failure.reason),
    where === '' ? '' : ` at the ${where}`,
    `: ${failure.message ?? ''}`,
  ];
}

/** @param {Waiting} waiting @returns {Given[]} */
export const waitingText = ({ reason, message }) => [
  h('strong', {}, plain(reason, 'WAIT_REASON_')),
  `: ${message ?? ''}`,
];

/**
 * A change that is asked for twice: the button, then whether that was meant.
 * @param {string} action @param {string} subject @param {string} text @param {string | undefined} asked `action subject` that was asked for
 */
export function actionButton(action, subject, text, asked) {
  const attributes = { type: 'button', 'data-action': action, 'data-subject': subject };
  if (asked !== `${action} ${subject}`) return h('button', attributes, text);
  return h(
    'span',
    { class: 'asked' },
    h('button', { ...attributes, class: 'sure', 'data-sure': true }, `Yes, ${text.toLowerCase()}`),
    h('button', { type: 'button', 'data-action': 'no' }, 'No'),
  );
}

/** @param {string} what @param {string | undefined} next the route of the next page @param {string | undefined} first */
export const pager = (what, next, first) =>
  h(
    'nav',
    { class: 'pager', 'aria-label': `Pages of ${what}` },
    first === undefined ? '' : link(first, 'First page'),
    next === undefined ? '' : link(next, 'Next page'),
  );
