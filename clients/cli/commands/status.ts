// polar status [TASK or SESSION]
import { type JsonValue, toJson } from '@bufbuild/protobuf';
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
import { type Command, URL_FLAGS } from '../arguments.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
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
  flags: { ...URL_FLAGS },
  examples: ['polar status', 'polar status calculator', 'polar status s0123456789ab-0 --json'],
  async run(args) {
    const url = rolloutUrl(args);
    const json = args.flags['json'] === true;
    const [id] = args.operands;
    await at(url, id === undefined ? showMesh(url, json) : showOne(url, id, json));
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
    const [a, b] = [toJson(ListNodesResponseSchema, nodes), toJson(ListTasksResponseSchema, tasks)];
    return sayJson({ ...(a as object), ...(b as object) });
  }
  const nodeRows = nodes.nodes.map((node) => [
    ...[node.nodeId, nodeState(node), node.backends.join(' ')],
    ...[node.preparing, node.ready, node.running, node.finishing].map(String),
    `${node.prepareSlots}/${node.runSlots}/${node.evaluateSlots}`,
  ]);
  say(table(['node', 'state', 'runtimes', 'preparing', 'ready', 'running', 'finishing', 'slots'], nodeRows));
  say('');
  say(table(['task', 'submitted', 'sessions', 'ended', 'mean reward'], tasks.tasks.map(taskRow)));
  if (tasks.nextPageToken !== '') say('older ones are not shown: polar status TASK, or the dashboard');
}

function taskRow(task: Task): string[] {
  const counts = Object.values(task.sessionsByState).reduce((sum, count) => sum + count, 0);
  const ended = Object.entries(task.sessionsByOutcome).map(([name, count]) => `${count} ${name}`);
  return [
    ...[task.taskId, timeOf(task.createTime), String(counts)],
    ...[ended.join(', ') || '–', task.meanReward?.toFixed(3) ?? '–'],
  ];
}

/** A task by its id, else a session by its own. */
async function showOne(url: string, id: string, json: boolean): Promise<void> {
  const sessions = await allSessions(url, id).catch(async (error) => {
    if (asPolarError(error).reason !== 'NOT_FOUND') throw error;
    if (!(await showSession(url, id, json))) throw error;
    return undefined;
  });
  if (sessions === undefined) return;
  if (!json) return printSessions(sessions);
  const values: JsonValue[] = sessions.map((session) => toJson(SessionSchema, session));
  sayJson({ sessions: values });
}

/** One session with its attempts and, where it waits, why; false where there is none. */
async function showSession(url: string, sessionId: string, json: boolean): Promise<boolean> {
  const found = await rolloutClient(url)
    .getSession({ sessionId })
    .catch((error) => {
      if (asPolarError(error).reason !== 'NOT_FOUND') throw error;
      return undefined;
    });
  if (found?.session === undefined) return false;
  const { session, waiting } = found;
  if (json) {
    const sessions = [toJson(SessionSchema, session)];
    sayJson({ sessions, ...(waiting && { waiting: toJson(WaitingSchema, waiting) }) });
    return true;
  }
  printSessions([session]);
  if (session.attempts.length > 0) say(`\n${attemptTable(session)}`);
  for (const line of deniedLines(session)) say(line);
  if (waiting !== undefined) {
    say(`\nwaits: ${WaitReason[waiting.reason].toLowerCase().replaceAll('_', ' ')}: ${waiting.message}`);
  }
  return true;
}

function nodeState({ healthy, draining, failures }: Node): string {
  if (!healthy) return 'down';
  if (draining) return 'draining';
  return failures === undefined ? 'up' : `failing: ${failures.count} × ${failures.reason}`;
}
