// @ts-check
// What each view needs, from the mesh: pages and single messages of bounded size, never a whole task.
import { CallError, call, stream } from './rpc.js';
import { sum } from './words.js';

/** @import { Call, Engine, Evaluation, Node, Output, Queue, Session, Summary, Task, Waiting } from './messages.ts' */
/** @import { Options } from './rpc.js' */
/** @import { Filter } from './routes.js' */

const ROLLOUT = 'polar.scheduler.v1.RolloutService';
const TRAJECTORIES = 'polar.reconstructor.v1.TrajectoryService';
const HARNESS = 'polar.harness_executor.v1.HarnessService';
const TASKS = 50;
const SESSIONS = 50;
const COMPARED = 200;
/** Tasks whose ends are counted for the rate. */
const COUNTED = 100;
const NODES_ASKED = 32;
/** Tasks whose waiting sessions are asked why. */
const WAITS_ASKED = 8;
const CALLS = 50;
/** More than the picture of them has room for. */
const SUMMARIES = 1_000;
/** Nodes and the reconstructor are waited for no longer: what the scheduler tells is shown whoever else is silent. */
const SILENT_MS = 5_000;
/** Of each output of a harness. */
const OUTPUT_BYTES = 64 * 1024;
/** Beyond any output: what is asked from there is nothing but its size. */
const BEYOND = String(2 ** 52);

/** @param {string[]} nodeIds of the topology @param {Options} options */
export async function loadMesh(nodeIds, options) {
  const [nodes, queues, tasks, ...engines] = await Promise.allSettled([
    call(`${ROLLOUT}/ListNodes`, {}, options),
    call(`${ROLLOUT}/ListQueues`, {}, options),
    call(`${ROLLOUT}/ListTasks`, { pageSize: COUNTED, summary: true }, options),
    ...nodeIds.slice(0, NODES_ASKED).map((node) => enginesOf(node, options)),
  ]);
  const problems = [nodes, queues, tasks, ...engines].flatMap((one) =>
    one.status === 'rejected' ? [String(one.reason.message)] : [],
  );
  const newest = /** @type {Task[]} */ (settled(tasks)?.tasks ?? []);
  return {
    nodes: /** @type {Node[]} */ (settled(nodes)?.nodes ?? []),
    queues: /** @type {Queue[]} */ (settled(queues)?.queues ?? []),
    tasks: newest,
    waits: await waitsOf(newest, options),
    engines: /** @type {Engine[]} */ (engines.flatMap((one) => settled(one) ?? [])),
    problems: [...new Set(problems)],
  };
}

/**
 * Why the last session of each of the tasks waits; nothing where it does not, or where that is not told.
 * @param {Task[]} tasks @param {Options} options @returns {Promise<Record<string, Waiting>>}
 */
async function waitsOf(tasks, options) {
  const waiting = tasks
    .filter(({ sessionsByState }) => (sessionsByState?.['queued'] ?? 0) > 0)
    .slice(0, WAITS_ASKED);
  const found = await Promise.allSettled(
    waiting.map(async ({ taskId, sessionsByState }) => {
      const request = { taskId, pageSize: 1, pageToken: String(sum(sessionsByState) - 1), waiting: true };
      const { waiting: whys = {} } = await call(`${ROLLOUT}/ListSessions`, request, options);
      const [why] = Object.values(whys);
      return why === undefined ? [] : [[taskId, why]];
    }),
  );
  return Object.fromEntries(found.flatMap((one) => settled(one) ?? []));
}

/** @param {PromiseSettledResult<any>} result */
const settled = (result) => (result.status === 'fulfilled' ? result.value : undefined);

/** @param {string} node @param {Options} options */
async function enginesOf(node, options) {
  try {
    const { engines = [] } = await call(
      'polar.llm_proxy.v1.ProxyService/ListEngines',
      {},
      { ...options, node, silentMs: SILENT_MS },
    );
    return engines.map((/** @type {object} */ engine) => ({ ...engine, nodeId: node }));
  } catch (error) {
    throw new Error(
      `the LLM proxy of node ${node} does not tell its engines: ${/** @type {Error} */ (error).message}`,
    );
  }
}

/**
 * Sessions that ended a second between two looks, in the tasks that both know.
 * @param {Task[]} before @param {Task[]} now @param {number} seconds
 */
export function rateOf(before, now, seconds) {
  const ended = (/** @type {Task} */ task) => sum(task.sessionsByOutcome);
  const known = new Map(before.map((task) => [task.taskId, ended(task)]));
  const more = now.reduce((all, task) => all + Math.max(0, ended(task) - (known.get(task.taskId) ?? 0)), 0);
  return seconds > 0 ? more / seconds : 0;
}

/** @param {Filter} filter @param {string} pageToken @param {Options} options @returns {Promise<{ tasks: Task[], next: string }>} */
export async function loadTasks({ name, harness, state, outcome }, pageToken, options) {
  const filter = {
    nameContains: name,
    harness,
    ...(state !== '' && { state: `SESSION_STATE_${state.toUpperCase()}` }),
    ...(outcome !== '' && { outcome: `OUTCOME_${outcome.toUpperCase()}` }),
  };
  const { tasks = [], nextPageToken = '' } = await call(
    `${ROLLOUT}/ListTasks`,
    { pageSize: TASKS, pageToken, summary: true, filter },
    options,
  );
  return { tasks, next: nextPageToken };
}

/**
 * @param {string} taskId @param {string} pageToken @param {Options} options
 * @returns {Promise<{ task: Task, sessions: Session[], waiting: Record<string, Waiting>, next: string }>}
 */
export async function loadTask(taskId, pageToken, options) {
  const [{ task }, page] = await Promise.all([
    call(`${ROLLOUT}/GetTask`, { taskId }, options),
    loadSessions(taskId, pageToken, options),
  ]);
  return { task, ...page };
}

/** When it ended, if it has. @param {string} taskId @param {Options} options @returns {Promise<string | undefined>} */
export async function loadEnd(taskId, options) {
  const { task } = await call(`${ROLLOUT}/GetTask`, { taskId, summary: true }, options);
  return task.endTime;
}

/** @param {string} taskId @param {string} pageToken @param {Options} options */
export async function loadSessions(taskId, pageToken, options) {
  const request = { taskId, pageSize: SESSIONS, pageToken, waiting: true };
  const {
    sessions = [],
    waiting = {},
    nextPageToken = '',
  } = await call(`${ROLLOUT}/ListSessions`, request, options);
  return { sessions, waiting, next: nextPageToken };
}

/** Every change from now on. @param {string} taskId @param {Options} options */
export const watchTask = (taskId, options) =>
  stream(`${ROLLOUT}/WatchTask`, { taskId, summary: true, changesOnly: true }, options);

/** @param {[string, string]} ids @param {Options} options */
export const loadCompared = (ids, options) =>
  Promise.all(/** @type {const} */ ([side(ids[0], options), side(ids[1], options)]));

/** @param {string} taskId @param {Options} options @returns {Promise<{ task: Task, sessions: Session[] }>} */
async function side(taskId, options) {
  const [{ task }, { sessions = [] }] = await Promise.all([
    call(`${ROLLOUT}/GetTask`, { taskId, summary: true }, options),
    call(`${ROLLOUT}/ListSessions`, { taskId, pageSize: COMPARED }, options),
  ]);
  return { task, sessions };
}

/** @param {string} sessionId @param {Options} options @returns {Promise<{ session: Session, waiting?: Waiting }>} */
export const loadSession = (sessionId, options) => call(`${ROLLOUT}/GetSession`, { sessionId }, options);

/**
 * What a harness wrote last, up to OUTPUT_BYTES of each output.
 * @param {Session} session @param {Options} options @returns {Promise<Output>}
 */
export async function loadOutput({ sessionId, nodeId, attempts = [] }, options) {
  const node = attempts.at(-1)?.nodeId ?? nodeId;
  if (node === undefined) throw new CallError('not_found', 'it has not run yet');
  const asked = { ...options, node, silentMs: SILENT_MS };
  const sizes = await call(
    `${HARNESS}/GetSessionLogs`,
    { sessionId, stdoutOffset: BEYOND, stderrOffset: BEYOND },
    asked,
  );
  const from = (/** @type {string | undefined} */ size) => Math.max(0, Number(size ?? 0) - OUTPUT_BYTES);
  const skipped = { stdout: from(sizes.stdoutSize), stderr: from(sizes.stderrSize) };
  const { attempt = 1 } = sizes;
  const request = {
    sessionId,
    attempt,
    stdoutOffset: String(skipped.stdout),
    stderrOffset: String(skipped.stderr),
  };
  const log = await call(`${HARNESS}/GetSessionLogs`, request, asked);
  const { stdout = '', stderr = '', running = false, exitCode = 0 } = log;
  return { stdout: textOf(stdout), stderr: textOf(stderr), skipped, attempt, running, exitCode };
}

/** @param {string} base64 */
const textOf = (base64) =>
  new TextDecoder().decode(
    Uint8Array.from(atob(base64), (one) => one.charCodeAt(0)).subarray(-2 * OUTPUT_BYTES),
  );

/**
 * Undefined where there is none. A group tells when all its sessions have ended.
 * @param {Session} session @param {Options} options @returns {Promise<Evaluation | undefined>}
 */
export async function loadEvaluation({ sessionId, reward }, options) {
  if (reward === undefined) return undefined;
  const asked = { ...options, silentMs: SILENT_MS };
  const { trajectory } = await call(`${TRAJECTORIES}/GetTrajectory`, { sessionId }, asked);
  return trajectory?.evaluation;
}

/** When the calls of a session were, and what they took. @param {string} sessionId @param {Options} options */
export async function loadSummaries(sessionId, options) {
  /** @type {Summary[]} */
  const summaries = [];
  const request = { sessionId, kind: 'EXPORT_KIND_SUMMARIES' };
  const asked = { ...options, silentMs: SILENT_MS };
  for await (const { line } of stream(`${TRAJECTORIES}/ExportSession`, request, asked)) {
    summaries.push(JSON.parse(line));
    if (summaries.length >= SUMMARIES) break;
  }
  return summaries;
}

/** The first calls of a session with what was said in them. @param {string} sessionId @param {Options} options */
export async function loadCalls(sessionId, options) {
  /** @type {Call[]} */
  const calls = [];
  const request = { sessionId, kind: 'EXPORT_KIND_MESSAGES' };
  const asked = { ...options, silentMs: SILENT_MS };
  const lines = stream(`${TRAJECTORIES}/ExportSession`, request, asked);
  for await (const { line } of lines) {
    calls.push(JSON.parse(line));
    if (calls.length >= CALLS) break;
  }
  return calls;
}
