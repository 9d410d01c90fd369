// How busy run slots are where a preparation takes three times as long as a run.
import { timestampMs } from '@bufbuild/protobuf/wkt';
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
}

const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });
const REPOSITORY = 'git init -q . && git -c user.name=n -c user.email=e@e commit -q --allow-empty -m base';

/** Prepare 3 s, run 1 s, grade 1 s. */
function spec(taskId: string, { layers, sessions }: SlotsCase) {
  return curlTask(taskId, sessions, 0, {
    harness: { name: 'shell', modelName: 'm', command: { command: 'echo made > made; sleep 1' } },
    runtime: {
      prepare: [exec(`${REPOSITORY} && sleep 3`)],
      evalPrepare: { steps: [exec(REPOSITORY)] },
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

/** The share of the time in which run slots ran a harness, from the first run's begin to the last one's end. */
export async function measureSlots(one: SlotsCase): Promise<number> {
  const node = { max_ready: one.ready };
  await using mesh = await startMesh({
    ...{ runSlots: RUN_SLOTS, prepareSlots: PREPARE_SLOTS, evaluateSlots: RUN_SLOTS * 2, node },
  });
  const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
  // The node's pace is known from what has run there.
  await run(rollout, 'earlier', { ...one, sessions: RUN_SLOTS });
  return busyShare(await run(rollout, 'slots', one));
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
  const runs = sessions.map(({ createTime, times }) => {
    const created = createTime === undefined ? 0 : timestampMs(createTime);
    const begin =
      created + Number((times?.queueMs ?? 0n) + (times?.prepareMs ?? 0n) + (times?.readyMs ?? 0n));
    return { begin, ms: Number(times?.runMs ?? 0n) };
  });
  const begin = Math.min(...runs.map((run) => run.begin));
  const end = Math.max(...runs.map((run) => run.begin + run.ms));
  return runs.reduce((sum, { ms }) => sum + ms, 0) / (RUN_SLOTS * (end - begin));
}
