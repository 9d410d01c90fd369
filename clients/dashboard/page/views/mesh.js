// @ts-check
// The mesh: what runs and waits, nodes, engines, queues, the newest tasks.
import { h } from '../element.js';
import { taskHash } from '../routes.js';
import { count, moment, rewardText } from '../words.js';
import { actionButton, badges, facts, link, section, table, waitingText } from './parts.js';
import { sparkline } from './picture.js';
import { taskHead, taskRow } from './tasks.js';

/** @import { Engine, Node, Queue, Task, Waiting } from '../messages.ts' */

/**
 * @typedef {{ nodes: Node[], queues: Queue[], tasks: Task[], engines: Engine[], waits: Record<string, Waiting>, problems: string[], rates: number[] }} Mesh
 *   `rates`: sessions that ended a second, of the tasks that are listed, the newest last; `problems`: what did not answer
 */

/** @param {Mesh} mesh @param {{ actions: boolean, asked?: string | undefined }} ui */
export const meshView = (mesh, ui) => [
  h('h1', {}, 'Mesh'),
  ...mesh.problems.map((problem) => h('p', { class: 'problem', role: 'alert' }, problem)),
  totals(mesh),
  section('Nodes', nodeTable(mesh.nodes, ui)),
  section('Engines', engineTable(mesh.engines)),
  section('Queues', queueTable(mesh.queues), waitTable(mesh)),
  section(
    'Newest tasks',
    table('Newest tasks', taskHead, mesh.tasks.slice(0, 10).map(taskRow), 'no task was submitted yet'),
  ),
];

/** @param {Mesh} mesh */
function totals({ nodes, queues, tasks, rates }) {
  const added = (/** @type {(queue: Queue) => number | undefined} */ of) =>
    queues.reduce((all, one) => all + (of(one) ?? 0), 0);
  const outcomes = merged(tasks);
  const rewards = tasks.flatMap(({ meanReward }) => (meanReward === undefined ? [] : [meanReward]));
  const mean = rewards.length === 0 ? undefined : rewards.reduce((all, one) => all + one, 0) / rewards.length;
  const listed = `of the ${tasks.length} newest tasks`;
  return section(
    'Now',
    facts([
      ['Healthy nodes', `${nodes.filter(({ healthy }) => healthy).length} of ${nodes.length}`],
      ['Sessions that wait for a node', added(({ waiting }) => waiting)],
      ['Sessions from dispatch to the end of their run', added(({ running }) => running)],
      [`Ended, ${listed}`, badges(outcomes)],
      [`Mean of their mean rewards, ${listed}`, rewardText(mean)],
      ['Sessions ended a second', rates.length === 0 ? '–' : (rates.at(-1) ?? 0).toFixed(2)],
    ]),
    rates.length > 1 && sparkline('Sessions ended a second', rates),
  );
}

/** @param {Task[]} tasks */
function merged(tasks) {
  /** @type {Record<string, number>} */
  const all = {};
  for (const { sessionsByOutcome } of tasks) {
    for (const [name, n] of Object.entries(sessionsByOutcome ?? {})) all[name] = (all[name] ?? 0) + n;
  }
  return all;
}

/** @param {Node[]} nodes @param {{ actions: boolean, asked?: string | undefined }} ui */
function nodeTable(nodes, { actions, asked }) {
  const head = [
    'Node',
    'State',
    'Last heartbeat',
    'Runtimes',
    'Preparing',
    'Ready',
    'Running',
    'Finishing',
    ...(actions ? ['Change'] : []),
  ];
  const rows = nodes.map((node) => {
    const slots = (/** @type {number | undefined} */ n, /** @type {number | undefined} */ of) =>
      `${n ?? 0} / ${of ?? 0}`;
    const [action, text] = node.draining ? ['undrain', 'Take back'] : ['drain', 'Drain'];
    return [
      ...[node.nodeId, nodeState(node), moment(node.heartbeatTime), (node.backends ?? []).join(' ')],
      ...[slots(node.preparing, node.prepareSlots), node.ready ?? 0],
      slots(node.running, node.runSlots) + (node.open ? `, ${node.open} elsewhere` : ''),
      slots(node.finishing, node.evaluateSlots),
      ...(actions ? [actionButton(action ?? '', node.nodeId, text ?? '', asked)] : []),
    ];
  });
  return table('Nodes and their slots', head, rows, 'no node sends heartbeats');
}

/** @param {Node} node */
function nodeState({ healthy, draining, failures }) {
  if (!healthy) return h('span', { class: 'badge bad' }, 'lost');
  if (failures && !draining) {
    const last = `${failures.count ?? 0} in a row, ${failures.reason ?? ''}`;
    return h('span', { class: 'badge bad', title: last }, 'failing');
  }
  return draining ? h('span', { class: 'badge warn' }, 'draining') : h('span', { class: 'badge good' }, 'up');
}

/** @param {Engine[]} engines */
const engineTable = (engines) =>
  table(
    'Engines as the LLM proxies see them',
    ['Engine', 'Seen by', 'Kind', 'Model', 'State', 'Calls', 'Sessions'],
    engines.map((engine) => [
      ...[engine.baseUrl ?? '', engine.nodeId, engine.kind ?? ''],
      [engine.model ?? '', engine.pool].filter((text) => text).join(', '),
      engineState(engine),
      `${engine.callsInFlight ?? 0} / ${engine.callsInFlightMax ?? 0}`,
      engine.sessions ?? 0,
    ]),
  );

/** @param {Engine} engine */
function engineState({ healthy, draining, problem }) {
  if (!healthy) return h('span', { class: 'badge bad' }, problem ?? 'does not answer');
  return draining ? h('span', { class: 'badge warn' }, 'draining') : h('span', { class: 'badge good' }, 'up');
}

/** @param {Queue[]} queues */
const queueTable = (queues) =>
  table(
    'Queues',
    ['Queue', 'Weight', 'Cap', 'Waiting', 'Running', 'Run time in s'],
    queues.map(({ name, weight, maxRunning, waiting, running, runSeconds }) => [
      ...[name, weight ?? 0, maxRunning || '–', waiting ?? 0, running ?? 0],
      (runSeconds ?? 0).toFixed(1),
    ]),
  );

/** @param {Mesh} mesh */
function waitTable({ tasks, waits }) {
  const waiting = tasks.filter(({ taskId }) => waits[taskId] !== undefined);
  if (waiting.length === 0) return '';
  const rows = waiting.map(({ taskId, sessionsByState }) => [
    ...[link(taskHash(taskId), taskId), count(sessionsByState?.['queued'])],
    h('span', {}, ...waitingText(/** @type {Waiting} */ (waits[taskId]))),
  ]);
  return table('What waits, and why', ['Task', 'Queued', 'Why the last of its sessions waits'], rows);
}
