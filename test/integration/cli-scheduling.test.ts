// The commands about queues, attempts and nodes, against a scheduler and a node that answers over NATS.
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { expect } from 'chai';
import { SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type Ended, polar, startPolar } from '../support/cli.ts';
import { failed, ran, startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { sessionsOf, startScheduler, type TestScheduler, taskSpec, until } from '../support/scheduler.ts';

describe('polar cancel, retry, queues, drain, status', function () {
  this.timeout(120_000);
  let nats: TestNats;
  let scheduler: TestScheduler;
  before(async () => {
    nats = await startNats();
    scheduler = await startScheduler(nats.url, {}, { rollout: { queues: [{ name: 'nightly', weight: 3 }] } });
  });
  after(async () => {
    await scheduler[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  const run = (...args: string[]): Promise<Ended> => polar([...args, '--rollout-url', scheduler.url]);
  const json = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { code, stdout, stderr } = await run(...args, '--json');
    expect(code, stderr).to.equal(0);
    return JSON.parse(stdout);
  };
  const allEnded = (taskId: string): Promise<void> =>
    until('all have ended', async () =>
      (await sessionsOf(scheduler.client, taskId)).every(({ endTime }) => endTime !== undefined),
    );

  it('say why a session waits, and cancel it alone', async () => {
    const spec = taskSpec('waits', { numSamples: 2, queue: 'nightly' });
    const { sessionIds } = await scheduler.client.submitTask({ spec });
    const [first = '', second = ''] = sessionIds;
    const shown = await run('status', first);
    expect(shown.stdout).to.contain('QUEUED').and.contain('waits: no node: no node sends heartbeats');
    expect(await json('status', first)).to.have.nested.property('waiting.reason', 'WAIT_REASON_NO_NODE');
    const queues = await run('queues');
    expect(queues.stdout).to.match(/nightly +3 +– +2 +0/);
    const empty = { name: 'nightly', maxRunning: 0, running: 0, runSeconds: 0 };
    expect(((await json('queues'))['queues'] as object[])[0]).to.include(empty);
    expect((await run('cancel', first)).stdout.trim()).to.equal(`session ${first}: cancelled`);
    expect(await json('cancel', second)).to.deep.equal({ session_id: second, outcome: 'cancelled' });
    const unknown = await run('cancel', 'nothing');
    expect(unknown.stderr).to.contain('NOT_FOUND: there is no task nothing');
    expect(unknown.code).to.equal(1);
  });

  it('follow a task until nobody reads on, which is no failure', async () => {
    const { sessionIds } = await scheduler.client.submitTask({ spec: taskSpec('read', { numSamples: 3 }) });
    const { child, ended } = startPolar(['watch', 'read', '--json', '--rollout-url', scheduler.url]);
    await once(child.stdout as Readable, 'data');
    child.stdout?.destroy();
    await scheduler.client.cancelSession({ sessionId: sessionIds[0] ?? '' });
    expect(await ended).to.include({ code: 0, stderr: '' });
    await scheduler.client.cancelTask({ taskId: 'read' });
  });

  it('cancel ahead of a submit', async () => {
    expect((await run('cancel', 'unborn', '--ahead')).stdout.trim()).to.equal('task unborn: cancelled ahead');
    const refused = await scheduler.client.submitTask({ spec: taskSpec('unborn') }).catch((error) => error);
    expect(refused.reason).to.equal('TASK_CANCELLED');
  });

  it('try infrastructure failures again, and show every attempt', async () => {
    await using node = await startFakeNode(nats.url);
    const { run: runs } = node.on;
    node.on.run = () => failed('run', 'SANDBOX_FAILED', 'on purpose');
    await scheduler.client.submitTask({ spec: taskSpec('again', { maxAttempts: 1 }) });
    await allEnded('again');
    node.on.run = runs;
    const [id = ''] = (await json('retry', 'again'))['session_ids'] as string[];
    await allEnded('again');
    const shown = await run('status', id);
    expect(shown.stdout).to.match(/1 +node-1 .*SANDBOX_FAILED: on purpose/);
    expect(shown.stdout).to.match(/2 +node-1 /);
    expect((await run('retry', 'again', '--only', 'missing')).stdout).to.contain('nothing to try again');
    expect((await run('retry', 'again', '--only', 'some')).code).to.equal(2);
  });

  it('resume a task with what is missing', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-resume-'));
    try {
      const file = join(folder, 'task.json');
      const agent = { harness: 'shell', custom_shell: { command: 'true' } };
      writeFileSync(file, JSON.stringify({ task_id: 'resumed', instruction: 'x', num_samples: 2, agent }));
      const [first = '', second = ''] = (await json('submit', file, '--resume'))['session_ids'] as string[];
      await scheduler.client.cancelSession({ sessionId: first });
      await json('submit', file, '--resume');
      const ended = async (): Promise<boolean[]> =>
        (await sessionsOf(scheduler.client, 'resumed')).map(({ state }) => state === SessionState.ENDED);
      expect(await ended()).to.deep.equal([false, false]);
      await scheduler.client.cancelSession({ sessionId: second });
      await json('submit', file);
      expect(await ended()).to.deep.equal([false, true]);
      await scheduler.client.cancelTask({ taskId: 'resumed' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('submit several files as one batch, and follow all of them', async () => {
    await using _node = await startFakeNode(nats.url);
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-batch-'));
    try {
      const agent = { harness: 'shell', custom_shell: { command: 'true' } };
      const files = ['many-1', 'many-2', 'many-3'].map((taskId) => {
        const file = join(folder, `${taskId}.json`);
        writeFileSync(file, JSON.stringify({ task_id: taskId, instruction: 'x', num_samples: 2, agent }));
        return file;
      });
      const lines = (await run('submit', '--json', ...files)).stdout.trim().split('\n');
      const told = lines.map((line) => JSON.parse(line) as { task_id: string; session_ids: string[] });
      expect(told.map(({ task_id }) => task_id)).to.deep.equal(['many-1', 'many-2', 'many-3']);
      expect(new Set(told.flatMap(({ session_ids }) => session_ids)).size).to.equal(6);
      const again = await run('submit', '--wait', ...files);
      expect(again.code, again.stderr).to.equal(0);
      for (const id of told.flatMap(({ session_ids }) => session_ids)) {
        expect(again.stdout).to.match(new RegExp(`${id} .*COMPLETED`));
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('have succeeded with a task that was stopped early', async () => {
    await using node = await startFakeNode(nats.url);
    const { run: ran, build } = node.on;
    node.on.run = (work) => (work.ref?.sampleIndex === 0 ? ran(work) : undefined);
    node.on.build = async (work) => {
      const built = await build(work);
      return { case: 'built', value: { ...(built?.value as object), stats: { trainedTokens: 1n } } };
    };
    await scheduler.client.submitTask({
      spec: taskSpec('early', { numSamples: 2, earlyStop: { minUsableSessions: 1 } }),
    });
    const { code, stdout, stderr } = await run('watch', 'early');
    expect(stdout).to.match(/-1: EARLY_STOPPED: /);
    expect(code, stderr).to.equal(0);
  });

  it('name the files of a batch that have faults, all of them, whoever finds them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-faulty-'));
    try {
      const [good, again, local, empty] = ['good', 'again', 'local', 'empty'].map((name) => {
        const task = { task_id: name === 'again' ? 'good' : name, instruction: name === 'empty' ? '' : 'x' };
        const agent = { harness: 'shell', custom_shell: { command: 'true' } };
        const callback_url = name === 'local' ? 'http://127.0.0.1:1/' : null;
        const file = join(folder, `${name}.json`);
        writeFileSync(file, JSON.stringify({ ...task, agent, callback_url }));
        return file;
      }) as [string, string, string, string];
      const atScheduler = await run('submit', good, again, local);
      expect(atScheduler.stderr).to.include(`  ${again}: task_id: good is there twice\n`);
      expect(atScheduler.stderr).to.include(`  ${local}: callback_url: 127.0.0.1 is not public`);
      expect(atScheduler.code).to.equal(2);
      const here = await run('submit', empty, good, join(folder, 'none.json'));
      expect(here.stderr).to.include(`${empty} has 1 fault(s):\n  instruction: must not be empty\n`);
      expect(here.stderr).to.match(/none\.json has 1 fault\(s\):\n {2}\(file\): ENOENT/);
      expect(here.code).to.equal(2);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('drain a node, and wait until nothing is there', async () => {
    await using node = await startFakeNode(nats.url, { id: 'node-empties', on: { run: () => undefined } });
    await scheduler.client.submitTask({ spec: taskSpec('empties', { numSamples: 2 }) });
    const runs = () => node.taken.filter(({ kind }) => kind.case === 'run');
    await until('both run', () => runs().length === 2);
    const { ended, stderr } = startPolar(['drain', node.id, '--wait', '--rollout-url', scheduler.url]);
    await until('it waits', () => stderr().includes('2 sessions are there'));
    for (const { ref, ...work } of runs()) {
      const end = await ran({ ref, ...work });
      if (ref !== undefined && end !== undefined) await node.fact(ref, end);
    }
    expect(await ended).to.include({
      code: 0,
      stdout: 'node node-empties: draining, 0 sessions are there\n',
    });
    expect((await run('drain', node.id, '--wait', '--undo')).code).to.equal(2);
    await run('drain', node.id, '--undo');
  });

  it('drain a node and take it back', async () => {
    await using _node = await startFakeNode(nats.url, { id: 'node-2' });
    await until('the node is known', async () =>
      (await scheduler.client.listNodes({})).nodes.some(({ nodeId }) => nodeId === 'node-2'),
    );
    expect((await run('drain', 'node-2')).stdout).to.contain('draining, 0 sessions');
    expect((await run('status')).stdout).to.match(/node-2 +draining/);
    expect(await json('drain', 'node-2', '--undo')).to.include({ draining: false });
    expect((await run('drain', 'node-none')).stderr).to.contain('NOT_FOUND');
  });
});
