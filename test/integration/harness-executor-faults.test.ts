import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type AttemptRef, RunWorkSchema, WorkSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { sha256 } from '../../services/common/ids.ts';
import { INLINE_BYTES_MAX } from '../../services/common/limits.ts';
import { createBlobStore, removeBlob } from '../../services/common/nats/blobs.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { eventually } from '../support/eventually.ts';
import { newRef, startNode, type TestNode, type WorkCase } from '../support/node.ts';
import { startStandInProxy } from '../support/stand-in-proxy.ts';

const run = (runtimeId: string, command: string): WorkCase => ({
  case: 'run',
  value: create(RunWorkSchema, {
    runtimeId,
    timeoutMs: 30_000n,
    harness: { name: 'shell', command: { command } },
  }),
});

describe('harness executor that is killed', () => {
  let node: TestNode;
  beforeEach(async () => {
    node = await startNode(['runtime-prewarm', 'harness-executor']);
  });
  afterEach(() => node[Symbol.asyncDispose]());

  const started = (): number =>
    node
      .log('harness-executor')
      .split('\n')
      .filter((line) => line.includes('harness started')).length;
  const begun = async (): Promise<void> => {
    await eventually('the harness has started', () => started() > 0);
    expect(node.facts).to.deep.equal([]);
  };
  const failureOf = async (ref: AttemptRef) => {
    const { kind } = await node.fact(ref);
    return kind.case === 'failed' ? kind.value.failure : undefined;
  };

  it('has its run reported as lost by the next one, which does not run it again', async () => {
    await using _ = await startStandInProxy({ node });
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    await node.work(ref, run(runtimeId, 'sleep 60'));
    await begun();
    await node.end('harness-executor', 'SIGKILL');
    await node.start('harness-executor');
    expect(await failureOf(ref)).to.include({ reason: 'EXECUTOR_LOST', infrastructure: true });
    expect(started()).to.equal(1);
  });

  it('has a run that it had not begun done by the next one', async () => {
    await using _ = await startStandInProxy({ node });
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    await node.end('harness-executor', 'SIGKILL');
    await node.work(ref, run(runtimeId, 'true'));
    await node.start('harness-executor');
    const { kind } = await node.fact(ref);
    expect(kind.case === 'ran' && kind.value.outcome).to.equal(Outcome.COMPLETED);
  });

  it('says itself that its runs are lost, where it may', async () => {
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    await node.work(ref, run(runtimeId, 'sleep 60'));
    await begun();
    await node.end('harness-executor', 'SIGTERM');
    expect(await failureOf(ref)).to.include({ reason: 'SHUTTING_DOWN', infrastructure: true });
  });

  it('reports a run that ended while NATS was down', async () => {
    await using _ = await startStandInProxy({ node });
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    await node.work(ref, run(runtimeId, 'sleep 1'));
    await begun();
    await node.nats.kill();
    await sleep(1_500);
    await node.nats.start();
    const { kind } = await node.fact(ref);
    expect(kind.case === 'ran' && kind.value.outcome).to.equal(Outcome.COMPLETED);
    expect(started()).to.equal(1);
  });

  it('says of work whose blob is lost that it is, and does not wait for the end of the budget', async () => {
    const { bus } = node;
    await node.end('harness-executor', 'SIGKILL');
    const ref = newRef();
    const skills = [{ target: 'a/SKILL.md', content: new Uint8Array(INLINE_BYTES_MAX) }];
    const value = create(RunWorkSchema, { runtimeId: 'any', timeoutMs: 3_600_000n, harness: { skills } });
    const work = toBinary(WorkSchema, create(WorkSchema, { ref, kind: { case: 'run', value } }));
    const outline = toBinary(WorkSchema, create(WorkSchema, { ref }));
    await publish(bus, createBlobStore(bus), subjects.work('run', ref.nodeId), work, { outline });
    await removeBlob(bus, sha256(work));
    await node.start('harness-executor');
    const { kind } = await node.fact(ref);
    expect(kind.case === 'failed' && kind.value).to.deep.include({ stage: 'run' });
    expect(await failureOf(ref)).to.include({ reason: 'BLOB_MISSING', infrastructure: true });
  });
});

describe('work that cannot be read', () => {
  it('is a dead letter of each kind, and comes to nobody again', async () => {
    await using node = await startNode(['runtime-prewarm', 'harness-executor', 'evaluator']);
    const { bus } = node;
    for (const kind of ['prepare', 'run', 'evaluate'] as const) {
      await publish(bus, createBlobStore(bus), subjects.work(kind, 'node-1'), new Uint8Array([1, 2, 3]));
    }
    const left = async (): Promise<number> => (await bus.jsm.streams.info(STREAMS.work.name)).state.messages;
    await eventually('none is left', async () => (await left()) === 0);
    expect((await bus.jsm.streams.info(STREAMS.dead.name)).state.messages).to.be.greaterThanOrEqual(2);
  });
});
