// State as the API shows it.
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Node,
  NodeSchema,
  type Task,
  TaskSchema,
} from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { isHealthy, type NodeState } from './nodes.ts';
import { Outcome, SessionState } from './session.ts';
import { allEnded, type TaskState } from './state.ts';

export function taskView(task: TaskState): Task {
  const { record, spec, byState, byOutcome, rewards, rewardSum, endMs } = task;
  return create(TaskSchema, {
    spec,
    createTime: timestampFromMs(Number(record.createMs)),
    ...(allEnded(task) && { endTime: timestampFromMs(endMs) }),
    sessionsByState: named(byState, SessionState),
    sessionsByOutcome: named(byOutcome, Outcome),
    ...(rewards > 0 && { meanReward: rewardSum / rewards }),
  });
}

function named(
  counts: ReadonlyMap<number, number>,
  names: Readonly<Record<number, string>>,
): Record<string, number> {
  return Object.fromEntries(
    [...counts].map(([key, count]) => [(names[key] ?? String(key)).toLowerCase(), count]),
  );
}

export function nodeView(node: NodeState): Node {
  const { id, heartbeat, seenUnixMs } = node;
  return create(NodeSchema, {
    nodeId: id,
    healthy: isHealthy(node),
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
  });
}
