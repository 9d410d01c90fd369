// A client that submits tasks through whatever happens: it repeats what was not acknowledged, and some of what was.
import { leaderClient } from '../../clients/cli/leader-client.ts';
import { Stragglers } from '../../gen/ts/polar/common/v1/task_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { asPolarError } from '../../services/common/errors.ts';
import { curlTask } from '../support/tasks.ts';
import type { ClusterEngine } from './engines.ts';

const PAUSE_MS = 200;
const REPEAT_SHARE = 0.2;
const CALLS = 3;
/** Storms strike one session more often than its share of infrastructure would. */
const ATTEMPTS_MAX = 10;

/** Which tasks run in an engine, if it is there: those with that rest. None is both engines'. */
const IN_ENGINE = { docker: { every: 5, rest: 0 }, podman: { every: 10, rest: 3 } } as const;
const GRADED_EVERY = 4;
/** Groups that come in two parts: what has not ended when two sessions are usable is carried over. */
const CARRIED = { every: 3, rest: 2 } as const;
const EARLY_STOP = { minUsableSessions: 2, stragglers: Stragglers.CARRY_OVER };
const REPOSITORY = 'git init -q . && git -c user.name=n -c user.email=e@e commit -q --allow-empty -m base';
/** Graded in a sandbox of its own, which is made ahead and prepared anew each time. */
const GRADED = {
  runtime: {
    prepare: [{ step: { case: 'exec' as const, value: { command: REPOSITORY } } }],
    prepareEach: true,
  },
  evaluator: {
    strategy: 'test_on_output',
    config: {
      repo_dir: '/polar/session/workspace',
      test_command: 'echo PASSED one',
      expected_output_json: { one: 'PASSED' },
    },
  },
};

const runtimeOf = ({ backend, image }: ClusterEngine) => ({ backend, image });
const taskIdOf = (i: number): string => `storm-${i}`;

export interface Submits {
  readonly urls: string;
  readonly tasks: number;
  readonly samples: number;
  readonly everyMs: number;
  readonly random: () => number;
  /** That some tasks run in; the others run in the default. */
  readonly engines: readonly ClusterEngine[];
}

export interface Submitted {
  /** Session ids of each task as they were acknowledged. */
  readonly acknowledged: ReadonlyMap<string, readonly string[]>;
  /** Why submits were tried again, each with how often. */
  readonly repeats: ReadonlyMap<string, number>;
  /** Tasks that a repeated submit gave other sessions than the first one. */
  readonly changed: readonly string[];
}

export async function submitAll({
  urls,
  tasks,
  samples,
  everyMs,
  random,
  engines,
}: Submits): Promise<Submitted> {
  const client = leaderClient(urls);
  const acknowledged = new Map<string, readonly string[]>();
  const changed: string[] = [];
  const repeats = new Map<string, number>();
  const submit = async (i: number): Promise<readonly string[]> => {
    const taskId = taskIdOf(i);
    const isFor = ({ every, rest }: { every: number; rest: number }): boolean => i % every === rest;
    const inEngine = engines.find(({ backend }) => isFor(IN_ENGINE[backend]));
    const isGraded = i % GRADED_EVERY === 1;
    const early = isFor(CARRIED) && samples > EARLY_STOP.minUsableSessions ? { earlyStop: EARLY_STOP } : {};
    const more = inEngine ? { runtime: runtimeOf(inEngine) } : isGraded ? GRADED : {};
    const spec = curlTask(taskId, samples, CALLS, { maxAttempts: ATTEMPTS_MAX, ...early, ...more });
    for (;;) {
      try {
        return (await client.submitTask({ spec, requestId: `request-${taskId}` })).sessionIds;
      } catch (error) {
        const { reason } = asPolarError(error);
        repeats.set(reason, (repeats.get(reason) ?? 0) + 1);
        await sleep(PAUSE_MS);
      }
    }
  };
  for (let i = 0; i < tasks; i++) {
    acknowledged.set(taskIdOf(i), await submit(i));
    if (random() < REPEAT_SHARE) {
      const earlier = Math.floor(random() * (i + 1));
      const again = await submit(earlier);
      const taskId = taskIdOf(earlier);
      if (String(again) !== String(acknowledged.get(taskId))) changed.push(taskId);
    }
    await sleep(everyMs);
  }
  return { acknowledged, repeats, changed };
}
