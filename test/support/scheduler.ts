// A scheduler for a test, in this process or as one of its own, with a client and a reader of what it announces.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import type { Client } from '@connectrpc/connect';
import type { Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type TaskSpec, TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { type GroupReady, GroupReadySchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { parseTopology } from '../../services/common/config/topology.ts';
import { createLogger } from '../../services/common/logger.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import type { Bus } from '../../services/common/nats/bus.ts';
import { checkOut } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import type { ContextOverrides } from '../../services/scheduler/context.ts';
import { SchedulerService } from '../../services/scheduler/service.ts';
import { programOf } from '../../tools/built.mjs';
import { COMPILED } from './compile-cache.ts';
import { eventually as until } from './eventually.ts';
import { freePort } from './nats.ts';

export { eventually as until } from './eventually.ts';

export type RolloutClient = Client<typeof RolloutService>;

export interface TestScheduler extends AsyncDisposable {
  readonly url: string;
  readonly client: RolloutClient;
  readonly failed: Promise<never>;
  /** Resolves when it leads. */
  readonly leading: Promise<void>;
}

/** What a test wants to have in the topology file. */
export interface TestTopology {
  readonly rollout?: object;
  readonly gateway?: object;
  readonly evaluators?: object;
}

/** In this process; it leads, or follows one that does. */
export async function startScheduler(
  natsUrl: string,
  overrides: ContextOverrides = {},
  { callbackSecret, ...given }: TestTopology & { readonly callbackSecret?: string } = {},
): Promise<TestScheduler> {
  const port = await freePort();
  const file = { ...given, rollout: { ...given.rollout, host: '127.0.0.1', port } };
  const topology = parseTopology(JSON.stringify(file), 'test');
  const log = createLogger('scheduler', process.env['POLAR_TEST_LOG'] ?? 'silent');
  const secret = callbackSecret === undefined ? {} : { callbackSecret };
  const config = {
    topology,
    nats: { url: natsUrl },
    logLevel: 'silent',
    lifeline: false,
    token: undefined,
    ...secret,
  };
  const service = await SchedulerService.start(config, log, new AbortController().signal, overrides);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    client: createPlainClient(RolloutService, url),
    failed: service.failed,
    leading: service.leading,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

export interface SchedulerProcess extends AsyncDisposable {
  readonly url: string;
  readonly client: RolloutClient;
  readonly pid: number;
  /** What `/readyz` says: `ok`, `following`, `not ready`; empty where nobody answers. */
  state(): Promise<string>;
  /** Send a signal. */
  signal(signal: NodeJS.Signals): void;
  /** Resolves when the process has ended. */
  ended(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Start again on the same port; resolves when it leads, or follows one that does. */
  start(): Promise<void>;
}

/** As a process of its own. */
export async function spawnScheduler(
  natsUrl: string,
  given: TestTopology = {},
  nodeFlags: readonly string[] = [],
): Promise<SchedulerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-scheduler-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const topology = join(folder, 'topology.yaml');
  const rollout = { ...given.rollout, host: '127.0.0.1' };
  writeFileSync(topology, JSON.stringify({ ...given, rollout, nats: { url: natsUrl } }));
  const main = programOf(join(import.meta.dirname, '..', '..', 'services', 'scheduler', 'main.ts'));
  let child: ChildProcess | undefined;
  const ended = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    await once(child, 'exit');
  };
  const kill = async (): Promise<void> => {
    child?.kill('SIGKILL');
    await ended();
  };
  const state = async (): Promise<string> => {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(1_000) }).catch(
      () => undefined,
    );
    return (await answer?.text().catch(() => ''))?.trim() ?? '';
  };
  const start = async (): Promise<void> => {
    const env = {
      PATH: process.env['PATH'],
      POLAR_TOPOLOGY: topology,
      POLAR_ROLLOUT_PORT: String(port),
      POLAR_LIFELINE: 'stdin',
      POLAR_LOG_LEVEL: process.env['POLAR_TEST_LOG'] ?? 'silent',
      ...COMPILED,
    };
    child = spawn(process.execPath, [...nodeFlags, main], { env, stdio: ['pipe', 'ignore', 'inherit'] });
    await until('the scheduler is ready', async () => /^(ok|following)$/.test(await state()));
  };
  await start();
  return {
    url,
    client: createPlainClient(RolloutService, url),
    get pid() {
      return child?.pid ?? 0;
    },
    state,
    signal: (signal) => void child?.kill(signal),
    ended,
    kill,
    start,
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

type TaskSpecInit = Exclude<MessageInitShape<typeof TaskSpecSchema>, TaskSpec>;

/** A small task of the shell harness that is graded, in a bubblewrap sandbox. */
export const taskSpec = (taskId: string, over: TaskSpecInit = {}): TaskSpec =>
  create(TaskSpecSchema, {
    taskId,
    instruction: 'add two numbers',
    harness: { name: 'shell', command: { command: 'true' } },
    evaluator: {
      strategy: 'test_on_output',
      config: { test_command: 'true', expected_output_json: { all: 'PASSED' } },
    },
    ...over,
  });

export async function sessionsOf(client: RolloutClient, taskId: string): Promise<Session[]> {
  return (await client.listSessions({ taskId, pageSize: 1000 })).sessions;
}

/** The announced group of a task, once it is there. */
export async function groupOf(bus: Bus, taskId: string, ms = 40_000, groupId = 'g0'): Promise<GroupReady> {
  let group: GroupReady | undefined;
  await until(
    `the group of ${taskId} is announced`,
    async () => {
      try {
        const subject = subjects.trajectory(taskId, groupId);
        const stored = await bus.direct.getMessage(STREAMS.trajectories.name, { last_by_subj: subject });
        const bytes = await checkOut(createBlobStore(bus), { data: stored.data, headers: stored.header });
        group = fromBinary(GroupReadySchema, bytes);
      } catch {
        return false;
      }
      return true;
    },
    ms,
  );
  return group as GroupReady;
}
