// Runs whose harness is not on their node yet: the install is no part of their budget.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { BudgetsSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { type AttemptRef, RunWorkSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { WaitReason } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { CONSUMERS, STREAMS } from '../../services/common/nats/streams.ts';
import { nodePython } from '../../services/harness-executor/installs/node-python.ts';
import { startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { newRef, startNode, type TestNode } from '../support/node.ts';
import { startScheduler, type TestScheduler, taskSpec, until } from '../support/scheduler.ts';
import { startStandInProxy } from '../support/stand-in-proxy.ts';
import { makeWheel } from '../support/wheel.ts';

const BUDGET_MS = 2_000;
const GRACE_MS = 200;

describe('a run that waits for its harness', () => {
  let nats: TestNats;
  let scheduler: TestScheduler;
  beforeEach(async () => {
    nats = await startNats();
    scheduler = await startScheduler(nats.url, { stageGraceMs: GRACE_MS });
  });
  afterEach(async () => {
    await scheduler[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  /** One session, whose run is taken and of which nothing is told by itself. */
  async function begin(node: Awaited<ReturnType<typeof startFakeNode>>): Promise<AttemptRef> {
    const budgets = create(BudgetsSchema, { run: durationFromMs(BUDGET_MS) });
    await scheduler.client.submitTask({ spec: taskSpec('new', { budgets, maxAttempts: 1 }) });
    const taken = (): AttemptRef | undefined => node.taken.find(({ kind }) => kind.case === 'run')?.ref;
    await until('it runs', () => taken() !== undefined);
    const ref = taken() as AttemptRef;
    await node.fact(ref, { case: 'installing', value: {} });
    return ref;
  }

  it('has its budget from when that is installed, and says what it waits for', async () => {
    await using node = await startFakeNode(nats.url, { on: { run: () => undefined } });
    const ref = await begin(node);
    const { sessionId } = ref;
    await until('it is told', async () => {
      const { waiting } = await scheduler.client.getSession({ sessionId });
      return waiting?.reason === WaitReason.HARNESS_INSTALL;
    });
    const { waiting } = await scheduler.client.getSession({ sessionId });
    expect(waiting?.message).to.equal('its harness shell is being installed on node node-1');
    await sleep(BUDGET_MS + 5 * GRACE_MS);
    await node.fact(ref, { case: 'installed', value: {} });
    await until('it waits no more', async () => {
      const { session, waiting } = await scheduler.client.getSession({ sessionId });
      expect(session?.state).to.equal(SessionState.RUNNING);
      return waiting === undefined;
    });
    await node.fact(ref, { case: 'ran', value: { outcome: Outcome.TIMEOUT } });
    await until('it has ended', async () => {
      const { session } = await scheduler.client.getSession({ sessionId });
      return session?.state === SessionState.ENDED;
    });
    const { session } = await scheduler.client.getSession({ sessionId });
    expect(session).to.include({ outcome: Outcome.TIMEOUT, attempt: 1, reward: 0.5 });
  });

  it('is given up, too, when nothing is heard of it after that', async () => {
    await using node = await startFakeNode(nats.url, { on: { run: () => undefined } });
    const ref = await begin(node);
    await node.fact(ref, { case: 'installed', value: {} });
    await until('it has ended', async () => {
      const { session } = await scheduler.client.getSession({ sessionId: ref.sessionId });
      return session?.failure?.reason === 'STAGE_TIMEOUT';
    });
  });
});

describe('harness executor without the harness of a run', () => {
  let folder: string;
  let node: TestNode;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-installs-'));
    const plugins = join(folder, 'plugins');
    mkdirSync(plugins);
    const adapter = { name: 'slow', version: '1.0.0', install: makeWheel(folder) };
    const plugin = (file: string, one: object): void =>
      writeFileSync(
        join(plugins, file),
        `export const adapter = { ...${JSON.stringify(one)}, command: ({ python }) => ({ argv: [python, '-c', ''] }) };`,
      );
    plugin('slow.mjs', adapter);
    plugin('newer.mjs', { ...adapter, install: { ...adapter.install, pythonMin: '3.99' } });
    const more = { plugins_dir: plugins, cache_dir: join(folder, 'cache') };
    node = await startNode(['runtime-prewarm', 'harness-executor'], more);
  });
  after(async () => {
    await node?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  async function runOf(importPath: string): Promise<AttemptRef> {
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    const value = create(RunWorkSchema, { runtimeId, timeoutMs: 20_000n, harness: { importPath } });
    await node.work(ref, { case: 'run', value });
    return ref;
  }

  async function factsOfRun(given = async () => {}): Promise<(string | undefined)[]> {
    await using _ = await startStandInProxy({ node });
    const ref = await runOf('slow.mjs');
    await given();
    await node.fact(ref);
    return node.facts.filter((fact) => fact.ref?.sessionId === ref.sessionId).map(({ kind }) => kind.case);
  }

  it('says when it installs it and when that has ended, and nothing once it is there', async () => {
    expect(await factsOfRun()).to.deep.equal(['installing', 'installed', 'ran']);
    expect(await factsOfRun()).to.deep.equal(['ran']);
  });

  it('installs it for the Python that the sandbox has, and tells a task whose image has none that will do', async () => {
    await factsOfRun();
    const python = await nodePython(
      { name: 'slow', install: makeWheel(folder) },
      AbortSignal.timeout(10_000),
    );
    const installed = readdirSync(join(folder, 'cache/harness/slow'));
    expect(installed).to.deep.equal([`1.0.0-python${python?.version}`]);
    const { kind } = await node.fact(await runOf('newer.mjs'));
    const failure = kind.case === 'failed' ? kind.value.failure : undefined;
    expect(failure).to.include({ reason: 'INVALID_TASK', infrastructure: false });
    expect(failure?.message).to.match(/^runtime.image: slow needs Python 3.99 or newer .* has 3\.\d+/);
  });

  it('has it in its sandboxes also where the whole cache was deleted meanwhile', async () => {
    rmSync(join(folder, 'cache'), { recursive: true });
    expect(await factsOfRun()).to.deep.equal(['installing', 'installed', 'ran']);
    expect(await factsOfRun()).to.deep.equal(['ran']);
  });

  it('says that it is there of a run that an executor had before, which may have waited for it', async () => {
    await node.end('harness-executor', 'SIGKILL');
    const { durable_name: durable = '' } = CONSUMERS.work('run', 'node-1', 4);
    const given = async (): Promise<void> => {
      const consumer = await node.bus.nc.jetstream().consumers.get(STREAMS.work.name, durable);
      (await consumer.next())?.nak();
      await node.start('harness-executor');
    };
    expect(await factsOfRun(given)).to.deep.equal(['installed', 'ran']);
  });
});
