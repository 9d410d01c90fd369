// Nodes that fail again and again, with a real nats-server and nodes that answer over NATS.
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import type { Node } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { polar } from '../support/cli.ts';
import { type Behaviour, failed, startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { sessionsOf, startScheduler, type TestScheduler, taskSpec, until } from '../support/scheduler.ts';

const broken: Behaviour = () => failed('prepare', 'SANDBOX_FAILED', 'ENOSPC');

describe('scheduler with nodes that fail', () => {
  let nats: TestNats;
  let scheduler: TestScheduler;
  beforeEach(async () => {
    nats = await startNats();
    scheduler = await startScheduler(nats.url);
  });
  afterEach(async () => {
    await scheduler[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  const submit = async (taskId: string, numSamples: number, maxAttempts = 3): Promise<string[]> =>
    (await scheduler.client.submitTask({ spec: taskSpec(taskId, { numSamples, maxAttempts }) })).sessionIds;
  const nodeOf = async (id: string): Promise<Node | undefined> =>
    (await scheduler.client.listNodes({})).nodes.find(({ nodeId }) => nodeId === id);
  const known = (...ids: string[]): Promise<void> =>
    until('the nodes are known', async () => (await Promise.all(ids.map(nodeOf))).every(Boolean));
  const allEnded = (taskId: string): Promise<void> =>
    until('all have ended', async () =>
      (await sessionsOf(scheduler.client, taskId)).every(({ endTime }) => endTime !== undefined),
    );
  const isFailing = async (id: string): Promise<boolean> => (await nodeOf(id))?.failures !== undefined;

  it('gives no session to a node where it was lost, and loses none to the one that fails at once', async () => {
    await using good = await startFakeNode(nats.url, { id: 'good' });
    await using bad = await startFakeNode(nats.url, { id: 'bad' });
    const { prepare } = good.on;
    good.on.prepare = async (work) => {
      await sleep(100);
      return await prepare(work);
    };
    bad.on.prepare = broken;
    await known('good', 'bad');
    await submit('many', 40);
    await allEnded('many');
    const sessions = await sessionsOf(scheduler.client, 'many');
    expect(sessions.map(({ outcome }) => Outcome[outcome])).to.deep.equal(
      sessions.map(() => 'COMPLETED'),
      JSON.stringify(sessions.map(({ attempts }) => attempts.map(({ nodeId }) => nodeId).join(' '))),
    );
    for (const { attempts } of sessions) expect(attempts.at(-1)?.nodeId).to.equal('good');
    expect(await isFailing('bad'), 'it took a part only').to.equal(true);
    expect(sessions.some(({ attempts }) => attempts.length === 1)).to.equal(true);
    bad.on.prepare = prepare;
    good.on.prepare = () => undefined;
    await submit('after', 30);
    await until('it has done well', async () => !(await isFailing('bad')));
  }).timeout(120_000);

  it('goes on where there is no other node, and says what is waited for', async () => {
    await using only = await startFakeNode(nats.url, { id: 'only' });
    const { prepare } = only.on;
    only.on.prepare = broken;
    await known('only');
    const ids = await submit('alone', 20, 10);
    await until('it is paused', () => isFailing('only'));
    const last = ids.at(-1) ?? '';
    let told = '';
    await until('it is told why', async () => {
      told = (await polar(['status', last, '--rollout-url', scheduler.url])).stdout;
      return told.includes('waits: nodes failing');
    });
    expect(told).to.match(/every node that fits fails, .*: only \(\d+ in a row, SANDBOX_FAILED\)/);
    const shown = await polar(['status', '--rollout-url', scheduler.url]);
    expect(shown.stdout).to.match(/only +failing: \d+ × SANDBOX_FAILED/);
    only.on.prepare = prepare;
    await allEnded('alone');
    const sessions = await sessionsOf(scheduler.client, 'alone');
    expect(sessions.every(({ outcome }) => outcome === Outcome.COMPLETED)).to.equal(true);
    expect(await isFailing('only')).to.equal(false);
  }).timeout(120_000);
});
