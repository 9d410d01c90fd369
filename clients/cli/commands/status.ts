// polar status [TASK or SESSION]
import { SessionSchema } from '../../../gen/ts/polar/common/v1/session_pb.js';
import {
  ListNodesResponseSchema,
  ListTasksResponseSchema,
  type Node,
  type Task,
  WaitingSchema,
  WaitReason,
} from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { asPolarError } from '../../../services/common/errors.ts';
import { type Arguments, type Command, TRAJECTORY_FLAGS, URL_FLAGS } from '../arguments.ts';
import { evaluationLines, evaluationOf } from '../evaluation.ts';
import { at, rolloutClient, rolloutUrl, trajectoryUrl } from '../mesh-clients.ts';
import { jsonOf } from '../output/json.ts';
import { say, sayJson } from '../output/say.ts';
import { attemptTable, deniedLines, table, timeOf } from '../output/table.ts';
import { allSessions } from '../watching.ts';
import { printSessions } from './watch.ts';

/** The newest. */
const TASKS_SHOWN = 50;

export const status: Command = {
  name: 'status',
  summary: 'show nodes and tasks, or the sessions of a task, or one session',
  operands: ['[TASK-OR-SESSION]'],
  flags: { ...URL_FLAGS, ...TRAJECTORY_FLAGS },
  examples: ['polar status', 'polar status calculator', 'polar status s0123456789ab-0 --json'],
  async run(args) {
    const url = rolloutUrl(args);
    const json = args.flags['json'] === true;
    const [id] = args.operands;
    await at(url, id === undefined ? showMesh(url, json) : showOne(url, id, args));
    return 0;
  },
};

async function showMesh(url: string, json: boolean): Promise<void> {
  const client = rolloutClient(url);
  const [nodes, tasks] = await Promise.all([
    client.listNodes({}),
    client.listTasks({ pageSize: TASKS_SHOWN, summary: true }),
  ]);
  if (json) {
    const [a, b] = [jsonOf(ListNodesResponseSchema, nodes), jsonOf(ListTasksResponseSchema, tasks)];
    return sayJson({ ...(a as object), ...(b as object) });
  }
  say(nodes.nodes.length === 0 ? NO_NODE : nodeTable(nodes.nodes));
  say('');
  say(tasks.tasks.length === 0 ? 'no task was submitted yet: polar submit FILE' : taskTable(tasks.tasks));
  if (tasks.nextPageToken !== '') say('older ones are not shown: polar status TASK, or the dashboard');
}

const NO_NODE =
  'no node sends heartbeats, so that no session can begin: polar serve_gateway starts one, polar up a whole mesh';

/** How many run elsewhere is told where any do. */
function nodeTable(nodes: readonly Node[]): string {
  const tellsOpen = nodes.some(({ open }) => open > 0);
  const rows = nodes.map((node) => [
    ...[node.nodeId, nodeState(node), node.backends.join(' ')],
    ...[node.preparing, node.ready, node.running, node.finishing].map(String),
    ...(tellsOpen ? [String(node.open)] : []),
    `${node.prepareSlots}/${node.runSlots}/${node.evaluateSlots}`,
  ]);
  const head = ['node', 'state', 'runtimes', 'preparing', 'ready', 'running', 'finishing'];
  return table([...head, ...(tellsOpen ? ['open'] : []), 'slots'], rows);
}

const taskTable = (tasks: readonly Task[]): string =>
  table(['task', 'submitted', 'sessions', 'ended', 'mean reward'], tasks.map(taskRow));

function taskRow(task: Task): string[] {
  const counts = Object.values(task.sessionsByState).reduce((sum, count) => sum + count, 0);
  const ended = Object.entries(task.sessionsByOutcome).map(([name, count]) => `${count} ${name}`);
  return [
    ...[task.taskId, timeOf(task.createTime), String(counts)],
    ...[ended.join(', ') || '–', task.meanReward?.toFixed(3) ?? '–'],
  ];
}

/** A task by its id, else a session by its own. */
async function showOne(url: string, id: string, args: Arguments): Promise<void> {
  const sessions = await allSessions(url, id).catch(async (error) => {
    if (asPolarError(error).reason !== 'NOT_FOUND') throw error;
    if (!(await showSession(url, id, args))) throw error;
    return undefined;
  });
  if (sessions === undefined) return;
  if (args.flags['json'] !== true) return printSessions(sessions);
  sayJson({ sessions: sessions.map((session) => jsonOf(SessionSchema, session)) });
}

/** One session with its attempts, why it waits, and why it has its reward; false where there is none. */
async function showSession(url: string, sessionId: string, args: Arguments): Promise<boolean> {
  const found = await rolloutClient(url)
    .getSession({ sessionId })
    .catch((error) => {
      if (asPolarError(error).reason !== 'NOT_FOUND') throw error;
      return undefined;
    });
  if (found?.session === undefined) return false;
  const { session, waiting } = found;
  const evaluation = await evaluationOf(trajectoryUrl(args), session);
  if (args.flags['json'] === true) {
    const why = waiting && { waiting: jsonOf(WaitingSchema, waiting) };
    sayJson({ sessions: [jsonOf(SessionSchema, session)], ...why, ...(evaluation && { evaluation }) });
    return true;
  }
  printSessions([session]);
  if (session.attempts.length > 0) say(`\n${attemptTable(session)}`);
  for (const line of deniedLines(session)) say(line);
  if (waiting !== undefined) {
    say(`\nwaits: ${WaitReason[waiting.reason].toLowerCase().replaceAll('_', ' ')}: ${waiting.message}`);
  }
  if (evaluation !== undefined) say(`\n${evaluationLines(evaluation).join('\n')}`);
  return true;
}

function nodeState({ healthy, draining, failures }: Node): string {
  if (!healthy) return 'down';
  if (draining) return 'draining';
  return failures === undefined ? 'up' : `failing: ${failures.count} × ${failures.reason}`;
}
