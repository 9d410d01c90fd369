// The store of NATS is full in mid-run: what is asked for is refused with the cause, what was taken goes on when there is
// room again.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { connect, type NatsConnection } from 'nats';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import type { PolarError } from '../../services/common/errors.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { polar, startPolar, usersOf } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { startMesh } from '../support/mesh.ts';
import { isHostRoot } from '../support/runtime-prewarm.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const WAIT_MS = 60_000;
const { state, completions, facts, trajectories } = STREAMS;
const LIMITED = [state, completions, facts, trajectories];

/** What an attempt that begins when there is room again calls before it ends. */
const CALLS_MAX = 100;

/** Each session calls the model until it is refused, and then until it is answered. */
function callingTask(taskId: string) {
  const call = `curl -sS --fail -o reply.json "$OPENAI_BASE_URL/chat/completions" \\
    -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' \\
    -d '{"model":"m","messages":[{"role":"user","content":"go on"}]}'`;
  const command = `n=0
    while ${call} && [ $((n += 1)) -le ${CALLS_MAX} ]; do sleep 0.3; done
    until ${call}; do sleep 0.3; done`;
  return curlTask(taskId, 2, 1, { harness: { name: 'shell', modelName: 'm', command: { command } } });
}

describe('a full store of NATS', function () {
  this.timeout(2 * WAIT_MS);
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-full-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Submits until that is refused, or taken; what came. */
  async function submitUntil(url: string, taskId: string, wanted: string): Promise<PolarError | undefined> {
    const rollout = createServiceClient(RolloutService, url);
    let error: PolarError | undefined;
    let count = 0;
    await eventually(
      () => `${wanted}, but ${error?.message}`,
      async () => {
        const spec = curlTask(`${taskId}-${wanted === 'taken' ? 0 : count++}`, 1, 1);
        error = await rollout.submitTask({ spec }, { timeoutMs: WAIT_MS }).then(
          () => undefined,
          (reason) => reason,
        );
        return (error?.reason ?? 'taken') === wanted;
      },
    );
    return error;
  }

  it('whose streams hold all they may: NATS_STORE_FULL, and all goes on when they may hold more', async () => {
    await using mesh = await startMesh({ runSlots: 2 });
    const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    await rollout.submitTask({ spec: callingTask('calls') });
    const nc = await connect({ servers: mesh.nats.url });
    try {
      const recorded = async () => (await infoOf(nc, completions.name)).state.messages;
      await eventually('both call', async () => (await recorded()) > 3);
      await limit(nc, 1);
      const error = await submitUntil(mesh.schedulerUrl, 'refused', 'NATS_STORE_FULL');
      expect(error?.message).to.contain(state.name);
      const status = await polar(['status', '-c', mesh.topologyFile]);
      const refused = () => mesh.log('llm-proxy').includes('RECORD_NOT_WRITTEN');
      await eventually('a call is refused', refused);
      expect(status.code).to.equal(0);
    } finally {
      await limit(nc);
      await nc.close();
    }
    await submitUntil(mesh.schedulerUrl, 'room', 'taken');
    await expectWhole(mesh, 'calls', 2);
  });

  if (isHostRoot) {
    it('whose disk is full: polar up says so, refuses, and goes on by itself when there is room', async () => {
      const store = join(folder, 'nats');
      mkdirSync(store);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m,mode=755', 'polar-test', store]);
      const up = startPolar(['up', '--data-dir', folder, '--json']);
      try {
        await eventually('the mesh is up', () => up.stdout().includes('"ready":'), WAIT_MS);
        const topology = join(folder, 'run', 'topology.yaml');
        const { addresses } = JSON.parse(up.stdout()) as { addresses: Record<string, string> };
        const schedulerUrl = addresses['tasks (RolloutService)'] as string;
        const reconstructorUrl = addresses['trajectories (TrajectoryService)'] as string;
        const rollout = createServiceClient(RolloutService, schedulerUrl);
        await rollout.submitTask({ spec: callingTask('calls') });
        const running = async () =>
          (await rollout.getTask({ taskId: 'calls' })).task?.sessionsByState['running'];
        await eventually('both run', async () => (await running()) === 2);
        const filler = join(store, 'filler');
        fill(filler);
        const error = await submitUntil(schedulerUrl, 'refused', 'NATS_STORE_FULL');
        expect(error?.message).to.contain('no space left').and.contain(store);
        await eventually('it is told', () => up.stderr().includes(`until there is room in ${store}`));
        await eventually('it is not ready', async () => !(await fetch(`${schedulerUrl}/readyz`)).ok);
        const status = await polar(['status', '-c', topology]);
        expect(status.stderr).to.contain('NATS_STORE_FULL');
        rmSync(filler);
        await submitUntil(schedulerUrl, 'room', 'taken');
        await expectWhole({ schedulerUrl, reconstructorUrl }, 'calls', 2);
        await eventually('it is ready', async () => (await fetch(`${schedulerUrl}/readyz`)).ok);
      } finally {
        up.child.kill('SIGTERM');
        await up.ended;
        execFileSync('umount', ['-l', store]);
      }
      expect(usersOf(folder)).to.deep.equal([]);
    });

    it('whose disk is full before it starts: polar up says so, as the logs cannot', async () => {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=755', 'polar-test', folder]);
      try {
        const { code, stderr } = await polar(['up', '--data-dir', folder]);
        expect(stderr).to.contain(`${folder} has hardly any room`);
        expect(code).to.equal(1);
      } finally {
        execFileSync('umount', ['-l', folder]);
      }
    });
  }
});

/** All sessions of a task are good, and their trajectories are there. */
async function expectWhole(
  { schedulerUrl, reconstructorUrl }: { schedulerUrl: string; reconstructorUrl: string },
  taskId: string,
  count: number,
): Promise<void> {
  const sessions = await waitForEnd(createServiceClient(RolloutService, schedulerUrl), taskId, WAIT_MS);
  expect(sessions).to.have.length(count);
  for (const { sessionId, outcome, failure, attempt } of sessions) {
    expect(outcome, failure?.message).to.equal(Outcome.COMPLETED);
    const trajectories = createServiceClient(TrajectoryService, reconstructorUrl);
    expect((await trajectories.getTrajectory({ sessionId })).trajectory?.attempt).to.equal(attempt);
  }
}

const infoOf = async (nc: NatsConnection, stream: string) =>
  await (await nc.jetstreamManager()).streams.info(stream);

/** Sets what the streams may hold; by default what is declared. */
async function limit(nc: NatsConnection, maxBytes?: number): Promise<void> {
  const jsm = await nc.jetstreamManager();
  for (const { name, max_bytes: declared = -1 } of LIMITED) {
    const { config } = await infoOf(nc, name);
    await jsm.streams.update(name, { ...config, max_bytes: maxBytes ?? declared });
  }
}

/** To the last byte. */
function fill(path: string): void {
  for (const size of [65_536, 4_096, 1]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' });
    } catch {
      // Full at this size.
    }
  }
}
