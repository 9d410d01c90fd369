// @ts-check
// Tasks by page, filtered at the scheduler.
import { h } from '../element.js';
import { compareHash, taskHash, tasksHash } from '../routes.js';
import { count, moment, rewardText, sum } from '../words.js';
import { badges, link, pager, section, table } from './parts.js';
import { rewardPicture } from './picture.js';

/** @import { Task } from '../messages.ts' */
/** @import { Filter } from '../routes.js' */

export const taskHead = ['Task', 'Submitted', 'Harness', 'Sessions', 'State', 'Ended as', 'Mean reward'];

/** @param {Task} task @returns {import('../element.js').Given[]} */
export const taskRow = (task) => [
  link(taskHash(task.taskId), task.taskId),
  moment(task.createTime),
  task.harness ?? '',
  count(sum(task.sessionsByState)),
  h('span', {}, ...badges(live(task))),
  h('span', {}, ...badges(task.sessionsByOutcome)),
  rewardText(task.meanReward),
];

/** @param {Task} task */
const live = ({ sessionsByState }) =>
  Object.fromEntries(Object.entries(sessionsByState ?? {}).filter(([state]) => state !== 'ended'));

/**
 * @param {{ tasks: Task[], next: string, filter: Filter, page: string, picked: string[], harnesses: string[] }} given
 *   `picked`: tasks to be set side by side, up to two
 */
export const tasksView = ({ tasks, next, filter, page, picked, harnesses }) => [
  h('h1', {}, 'Tasks'),
  filterForm(filter, harnesses),
  h(
    'p',
    { class: 'note' },
    picked.length === 2 ? compareLink(picked) : 'Pick two tasks to set them side by side.',
  ),
  table(
    'Tasks, newest first',
    ['Pick', ...taskHead],
    tasks.map((task) => [pick(task.taskId, picked), ...taskRow(task)]),
    next === '' ? 'no task fits' : 'none among those that were looked at; the next page looks further',
  ),
  pager(
    'tasks',
    next === '' ? undefined : tasksHash(filter, next),
    page === '' ? undefined : tasksHash(filter),
  ),
  section(
    'Mean rewards of this page, oldest first',
    rewardPicture(
      tasks.toReversed().map(({ taskId, meanReward }) => ({ label: taskId, reward: meanReward })),
    ),
  ),
];

/** @param {string[]} picked */
const compareLink = ([a = '', b = '']) => link(compareHash(a, b), `Set ${a} and ${b} side by side`);

/** @param {string} id @param {string[]} picked */
const pick = (id, picked) =>
  h(
    'button',
    {
      type: 'button',
      'data-action': 'pick',
      'data-subject': id,
      'aria-pressed': String(picked.includes(id)),
      title: `Pick ${id}`,
    },
    picked.includes(id) ? '✓' : '+',
  );

const STATES = ['queued', 'preparing', 'ready', 'running', 'finishing', 'ended'];
const OUTCOMES = ['completed', 'timeout', 'harness_error', 'infrastructure_error', 'cancelled', 'task_error'];

/** @param {Filter} filter @param {string[]} harnesses */
const filterForm = ({ name, harness, state, outcome }, harnesses) =>
  h(
    'form',
    { id: 'filter', role: 'search' },
    h(
      'label',
      {},
      'Name',
      h('input', {
        name: 'name',
        type: 'search',
        value: name,
        maxlength: 128,
        placeholder: 'part of the id',
      }),
    ),
    choice('Harness', 'harness', harness, harnesses),
    choice('With a session', 'state', state, STATES),
    choice('Ended as', 'outcome', outcome, OUTCOMES),
    h('button', { type: 'submit' }, 'Filter'),
  );

/** @param {string} label @param {string} name @param {string} chosen @param {string[]} values */
const choice = (label, name, chosen, values) =>
  h(
    'label',
    {},
    label,
    h(
      'select',
      { name },
      h('option', { value: '', selected: chosen === '' }, 'any'),
      ...[...new Set([...values, ...(chosen === '' ? [] : [chosen])])].map((value) =>
        h('option', { value, selected: value === chosen }, value.replaceAll('_', ' ')),
      ),
    ),
  );
