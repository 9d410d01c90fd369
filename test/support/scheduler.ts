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
import { eventually as until } from './eventually.ts';
import { freePort } from './nats.ts';

export { eventually as until } from './eventually.ts';

export type RolloutClient = Client<typeof RolloutService>;

export interface TestScheduler extends AsyncDisposable {
  readonly client: RolloutClient;
  readonly failed: Promise<never>;
}

/** In this process. */
export async function startScheduler(
  natsUrl: string,
  overrides: ContextOverrides = {},
): Promise<TestScheduler> {
  const port = await freePort();
  const topology = parseTopology(JSON.stringify({ rollout: { host: '127.0.0.1', port } }), 'test');
  const log = createLogger('scheduler', process.env['POLAR_TEST_LOG'] ?? 'silent');
  const config = { topology, natsUrl, logLevel: 'silent', lifeline: false };
  const service = await SchedulerService.start(config, log, new AbortController().signal, overrides);
  return {
    client: createPlainClient(RolloutService, `http://127.0.0.1:${port}`),
    failed: service.failed,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

export interface SchedulerProcess extends AsyncDisposable {
  readonly client: RolloutClient;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Start again on the same port; resolves when it is ready. */
  start(): Promise<void>;
}

/** As a process of its own. */
export async function spawnScheduler(natsUrl: string): Promise<SchedulerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-scheduler-'));
  const port = await freePort();
  const topology = join(folder, 'topology.yaml');
  writeFileSync(topology, JSON.stringify({ rollout: { host: '127.0.0.1', port }, nats: { url: natsUrl } }));
  const main = join(import.meta.dirname, '..', '..', 'services', 'scheduler', 'main.ts');
  let child: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  const start = async (): Promise<void> => {
    const env = { PATH: process.env['PATH'], POLAR_TOPOLOGY: topology, POLAR_LIFELINE: 'stdin' };
    child = spawn(process.execPath, [main], { env, stdio: ['pipe', 'ignore', 'inherit'] });
    await until('the scheduler is ready', async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
      return answer?.ok === true;
    });
  };
  await start();
  return {
    client: createPlainClient(RolloutService, `http://127.0.0.1:${port}`),
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
    evaluator: { strategy: 'session_completed' },
    ...over,
  });

export async function sessionsOf(client: RolloutClient, taskId: string): Promise<Session[]> {
  return (await client.listSessions({ taskId, pageSize: 1000 })).sessions;
}

/** The announced group of a task, once it is there. */
export async function groupOf(bus: Bus, taskId: string, ms = 40_000): Promise<GroupReady> {
  let group: GroupReady | undefined;
  await until(
    `the group of ${taskId} is announced`,
    async () => {
      try {
        const subject = subjects.trajectory(taskId, 'g0');
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
