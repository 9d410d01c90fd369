// State as the API shows it.
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { CallbackState } from '../../../gen/ts/polar/scheduler/v1/callback_state_pb.js';
import {
  type NodeFailures,
  NodeFailuresSchema,
} from '../../../gen/ts/polar/scheduler/v1/node_failures_pb.js';
import {
  type Node,
  NodeSchema,
  type Queue,
  QueueSchema,
  type Task,
  TaskSchema,
} from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { type Failures, isFailing } from './failing.ts';
import { isHealthy, type NodeState } from './nodes.ts';
import { groupIdOf, harnessOf, Outcome, SessionState } from './session.ts';
import type { Share } from './shares.ts';
import { allEnded, type TaskState } from './state.ts';

export function taskView(task: TaskState): Task {
  const { record, spec, byState, byOutcome, rewards, rewardSum, endMs, round } = task;
  return create(TaskSchema, {
    taskId: record.taskId,
    spec,
    groupId: groupIdOf(round),
    harness: harnessOf(spec),
    callbackState: callbackState(task),
    createTime: timestampFromMs(Number(record.createMs)),
    ...(allEnded(task) && { endTime: timestampFromMs(endMs) }),
    sessionsByState: named(byState, SessionState),
    sessionsByOutcome: named(byOutcome, Outcome),
    ...(rewards > 0 && { meanReward: rewardSum / rewards }),
  });
}

/** Without its spec, which may be large. */
export function summaryOf(task: Task): Task {
  const { spec: _, ...summary } = task;
  return summary;
}

function callbackState({ spec, callback }: TaskState): CallbackState {
  if (spec.callbackUrl === '') return CallbackState.UNSPECIFIED;
  if (callback === undefined) return CallbackState.PENDING;
  return callback === 'delivered' ? CallbackState.DELIVERED : CallbackState.GIVEN_UP;
}

export function queueView({ name, weight, maxRunning, waiting, running, runSeconds }: Share): Queue {
  return create(QueueSchema, { name, weight, maxRunning, waiting, running, runSeconds });
}

function named(
  counts: ReadonlyMap<number, number>,
  names: Readonly<Record<number, string>>,
): Record<string, number> {
  return Object.fromEntries(
    [...counts].map(([key, count]) => [(names[key] ?? String(key)).toLowerCase(), count]),
  );
}

export function nodeView(node: NodeState, draining: boolean): Node {
  const { id, heartbeat, seenUnixMs } = node;
  return create(NodeSchema, {
    nodeId: id,
    healthy: isHealthy(node),
    draining,
    ...(heartbeat && {
      bootId: heartbeat.bootId,
      backends: heartbeat.backends,
      prepareSlots: heartbeat.prepareSlots,
      runSlots: heartbeat.runSlots,
      evaluateSlots: heartbeat.evaluateSlots,
      heartbeatTime: timestampFromMs(seenUnixMs),
    }),
    preparing: node.preparing.size,
    ready: node.ready.size,
    running: node.running.size,
    finishing: node.finishing.size,
    open: node.open.size,
    ...(isFailing(node.failures) && { failures: failuresView(node.failures) }),
  });
}

const failuresView = ({ count, reason, pausedUntilMs }: Failures): NodeFailures =>
  create(NodeFailuresSchema, {
    count,
    reason,
    ...(pausedUntilMs > 0 && { pausedUntilTime: timestampFromMs(pausedUntilMs) }),
  });
