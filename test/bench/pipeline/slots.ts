// How busy run slots are where a preparation takes three times as long as a run, and how long grading takes after it.
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Client } from '@connectrpc/connect';
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../../services/common/client.ts';
import { startMesh } from '../../support/mesh.ts';
import { curlTask, waitForEnd } from '../../support/tasks.ts';

const RUN_SLOTS = 2;
const PREPARE_SLOTS = 8;
const END_MS = 240_000;

export interface SlotsCase {
  readonly what: string;
  /** Prepared sandboxes that wait. */
  readonly ready: number;
  readonly layers: boolean;
  readonly sessions: number;
  /** The sandbox of an evaluation is prepared as long as that of a run; so many are made ahead. */
  readonly evaluationsAhead?: number;
}

export interface SlotsFigures {
  readonly busyShare: number;
  /** From the end of a run to the session's, p50. */
  readonly gradedMs: number;
}

const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });
const EACH_MS = 3_000;
const REPOSITORY = 'git init -q . && git -c user.name=n -c user.email=e@e commit -q --allow-empty -m base';

/** Prepare 3 s, run 1 s, grade 1 s. */
function spec(taskId: string, { layers, sessions, evaluationsAhead }: SlotsCase) {
  const slow = `${REPOSITORY} && sleep ${EACH_MS / 1_000}`;
  return curlTask(taskId, sessions, 0, {
    harness: { name: 'shell', modelName: 'm', command: { command: 'echo made > made; sleep 1' } },
    runtime: {
      prepare: [exec(slow)],
      evalPrepare: { steps: [exec(evaluationsAhead === undefined ? REPOSITORY : slow)] },
      prepareEach: !layers,
    },
    evaluator: {
      strategy: 'test_on_output',
      config: {
        repo_dir: '/polar/session/workspace',
        test_command: 'sleep 1; echo PASSED one',
        expected_output_json: { one: 'PASSED' },
      },
    },
  });
}

/** Of the time from the first run's begin to the last one's end. */
export async function measureSlots(one: SlotsCase): Promise<SlotsFigures> {
  const node = { max_ready: one.ready, max_postrun_ready: one.evaluationsAhead ?? 0 };
  await using mesh = await startMesh({
    ...{ runSlots: RUN_SLOTS, prepareSlots: PREPARE_SLOTS, evaluateSlots: RUN_SLOTS * 2, node },
  });
  const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
  // The node's pace is known from what has run there.
  await run(rollout, 'earlier', { ...one, sessions: RUN_SLOTS });
  const sessions = await run(rollout, 'slots', one);
  return { busyShare: busyShare(sessions), gradedMs: gradedP50Ms(sessions) };
}

async function run(
  rollout: Client<typeof RolloutService>,
  taskId: string,
  one: SlotsCase,
): Promise<Session[]> {
  await rollout.submitTask({ spec: spec(taskId, one) });
  const sessions = await waitForEnd(rollout, taskId, END_MS);
  const unusable = sessions.filter(({ reward }) => reward !== 1);
  if (unusable.length > 0) {
    throw new Error(
      `${unusable.length} were not graded 1: ${unusable[0]?.failure?.message ?? 'see the evaluation'}`,
    );
  }
  return sessions;
}

function busyShare(sessions: readonly Session[]): number {
  const runs = sessions.map((session) => ({
    end: runEndMs(session),
    ms: Number(session.times?.runMs ?? 0n),
  }));
  const begin = Math.min(...runs.map(({ end, ms }) => end - ms));
  const end = Math.max(...runs.map((run) => run.end));
  return runs.reduce((sum, { ms }) => sum + ms, 0) / (RUN_SLOTS * (end - begin));
}

function gradedP50Ms(sessions: readonly Session[]): number {
  const all = sessions.map((session) => at(session.endTime) - runEndMs(session)).sort((a, b) => a - b);
  return all[Math.floor(all.length / 2)] ?? 0;
}

/** Unix time in milliseconds. */
function runEndMs({ createTime, times }: Session): number {
  const { queueMs = 0n, prepareMs = 0n, readyMs = 0n, runMs = 0n } = times ?? {};
  return at(createTime) + Number(queueMs + prepareMs + readyMs + runMs);
}

const at = (time: Timestamp | undefined): number => (time === undefined ? 0 : timestampMs(time));
