import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type AttemptRef, RunWorkSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../services/common/clock.ts';
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
    expect(await failureOf(ref)).to.include({ infrastructure: true });
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
});
