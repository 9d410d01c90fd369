// The scheduler against a real nats-server, with a node that answers work over NATS: submit, cancel, what is
// shown.
import { expect } from 'chai';
import { type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { PolarError } from '../../services/common/errors.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { groupOf, startScheduler, type TestScheduler, taskSpec, until } from '../support/scheduler.ts';

async function refusal(call: Promise<unknown>): Promise<PolarError> {
  const error = await call.then(
    () => new Error('it was not refused'),
    (reason) => reason,
  );
  if (!(error instanceof PolarError)) throw error;
  return error;
}

describe('scheduler API', () => {
  let nats: TestNats;
  let bus: Bus;
  let scheduler: TestScheduler;
  // A server for each test: a node that ended is taken for healthy until its heartbeats are overdue.
  beforeEach(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
    scheduler = await startScheduler(nats.url);
  });
  afterEach(async () => {
    await scheduler[Symbol.asyncDispose]();
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  describe('cancel', () => {
    it('ends queued and running sessions, stops their sandboxes and their credentials', async () => {
      await using node = await startFakeNode(nats.url, {
        runSlots: 1,
        readySlots: 1,
        on: { run: () => undefined },
      });
      const { sessionIds } = await scheduler.client.submitTask({
        spec: taskSpec('cancelled', { numSamples: 5 }),
      });
      await until('one runs', () => node.taken.some(({ kind }) => kind.case === 'run'));
      const running = node.taken.find(({ kind }) => kind.case === 'run')!.ref!;
      const capabilities = await bus.kv('capabilities');
      await capabilities.put(`${running.sessionId}.1`, new Uint8Array([1]));
      const { task } = await scheduler.client.cancelTask({ taskId: 'cancelled' });
      expect(task?.sessionsByOutcome).to.deep.equal({ cancelled: 5 });
      const group = await groupOf(bus, 'cancelled');
      expect(group.sessions.map((one) => one.sessionId)).to.deep.equal(sessionIds);
      expect(group.sessions.every((one) => one.failure?.reason === 'CANCELLED')).to.equal(true);
      await until('all sandboxes are revoked', () => node.sandboxes.size === 0);
      await until('the credential is gone', async () => {
        const entry = await capabilities.get(`${running.sessionId}.1`);
        return entry === null || entry.operation !== 'PUT';
      });
      const again = await scheduler.client.cancelTask({ taskId: 'cancelled' });
      expect(again.task?.sessionsByOutcome).to.deep.equal({ cancelled: 5 });
      expect((await refusal(scheduler.client.cancelTask({ taskId: 'nothing' }))).reason).to.equal(
        'NOT_FOUND',
      );
    });
  });

  describe('submit', () => {
    it('answers an equal replay with the first task, and refuses another content', async () => {
      const spec = taskSpec('idempotent', { numSamples: 3, runtime: { env: { A: '1', B: '2' } } });
      const first = await scheduler.client.submitTask({ spec, requestId: 'r-1' });
      const replayed = taskSpec('idempotent', { numSamples: 3, runtime: { env: { B: '2', A: '1' } } });
      const again = await scheduler.client.submitTask({ spec: replayed, requestId: 'r-1' });
      expect(again.sessionIds).to.deep.equal(first.sessionIds);
      const defaults = taskSpec('idempotent', {
        numSamples: 3,
        maxAttempts: 3,
        runtime: { env: { A: '1', B: '2' } },
      });
      expect((await scheduler.client.submitTask({ spec: defaults })).sessionIds).to.deep.equal(
        first.sessionIds,
      );

      const other = taskSpec('idempotent', { numSamples: 4 });
      expect((await refusal(scheduler.client.submitTask({ spec: other }))).reason).to.equal('TASK_EXISTS');
      const otherTask = taskSpec('idempotent-2');
      const error = await refusal(scheduler.client.submitTask({ spec: otherTask, requestId: 'r-1' }));
      expect(error.reason).to.equal('TASK_EXISTS');
      expect(error.message).to.include('idempotent');
    });

    it('takes one of many equal submits at once', async () => {
      const spec = taskSpec('at-once', { numSamples: 2 });
      const answers = await Promise.all(
        Array.from({ length: 16 }, () => scheduler.client.submitTask({ spec })),
      );
      const ids = new Set(answers.map(({ sessionIds }) => sessionIds.join()));
      expect(ids.size).to.equal(1);
    });

    it('holds submits that come together to the specs that may be in memory', async () => {
      await scheduler[Symbol.asyncDispose]();
      const liveSpecsBytesMax = 1024 * 1024;
      scheduler = await startScheduler(nats.url, { liveSpecsBytesMax });
      await scheduler.leading;
      const submit = (taskId: string): Promise<unknown> =>
        scheduler.client.submitTask({ spec: taskSpec(taskId, { instruction: 'x'.repeat(100 * 1024) }) });
      const submits = await Promise.allSettled(Array.from({ length: 40 }, (_, i) => submit(`t${i}`)));
      const refused = submits.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      expect(refused.length).to.be.within(30, 39);
      expect(new Set(refused.map(({ reason }) => reason))).to.deep.equal(new Set(['LIVE_SESSIONS_LIMIT']));
      expect(refused[0]?.message).to.contain(`LIVE_SPECS_BYTES_MAX (${liveSpecsBytesMax})`);
      const [{ taskId = '' } = {}] = (await scheduler.client.listTasks({ summary: true })).tasks;
      await scheduler.client.cancelTask({ taskId });
      await until('there is room for one again', async () => {
        return await submit('more').then(
          () => true,
          () => false,
        );
      });
    });

    it('names every fault at once', async () => {
      const spec = taskSpec('bad id', { instruction: '', harness: { name: 'emacs' }, numSamples: 99_999 });
      const error = await refusal(scheduler.client.submitTask({ spec, requestId: 'x'.repeat(129) }));
      expect(error.reason).to.equal('INVALID_TASK');
      expect(error.fields.map(({ field }) => field)).to.have.members([
        'task_id',
        'instruction',
        'num_samples',
        'harness.name',
        'request_id',
      ]);
      expect(error.message).to.include('shell, pi');
      expect((await refusal(scheduler.client.submitTask({}))).reason).to.equal('INVALID_TASK');
    });

    it('names the free-form part that is too deep, or holds what is no text', async () => {
      const submit = async (metadata: string): Promise<string> => {
        const spec = `{"taskId": "t", "instruction": "i", "harness": {"name": "pi"}, "metadata": ${metadata}}`;
        const answer = await fetch(`${scheduler.url}/polar.scheduler.v1.RolloutService/SubmitTask`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: `{"spec": ${spec}}`,
        });
        expect(answer.status, await answer.clone().text()).to.equal(400);
        return await answer.text();
      };
      const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
      for (const levels of [31, 60, 300]) {
        expect(await submit(nested(levels)))
          .to.contain('INVALID_TASK')
          .and.contain('metadata: has more than');
      }
      expect(await submit('{"a": "a\\ud800b"}'))
        .to.contain('INVALID_TASK')
        .and.contain('metadata.a: must be text');
    });

    it('refuses a backend or an image that no node has, but only while a node is known', async () => {
      const unknown = taskSpec('early', { runtime: { backend: 'bubblewrap', image: 'debian' } });
      await scheduler.client.submitTask({ spec: unknown });
      await using _node = await startFakeNode(nats.url, { backends: ['bubblewrap'], images: ['alpine'] });
      await until('the node is known', async () => (await scheduler.client.listNodes({})).nodes.length > 0);
      const process = taskSpec('late', { runtime: { backend: 'process' } });
      const error = await refusal(scheduler.client.submitTask({ spec: process }));
      expect(error.reason).to.equal('BACKEND_NOT_OFFERED');
      expect(error.fields.map(({ field }) => field)).to.deep.equal(['runtime.backend']);
      const image = taskSpec('late', { runtime: { image: 'debian' } });
      const missing = await refusal(scheduler.client.submitTask({ spec: image }));
      expect(missing.reason).to.equal('IMAGE_NOT_FOUND');
      expect(missing.message).to.include('node-1 has alpine');
      await scheduler.client.submitTask({ spec: taskSpec('late', { runtime: { image: 'alpine' } }) });
      const early = await scheduler.client.getTask({ taskId: 'early' });
      expect(early.task?.sessionsByState).to.deep.equal({ queued: 1 });
    });

    it('carries uploads of many megabytes to the node, and shows the task without them', async () => {
      await using node = await startFakeNode(nats.url);
      const content = new Uint8Array(3 * 1024 * 1024).fill(7);
      const step = { case: 'uploadFile' as const, value: { target: '/data/big', content } };
      const spec = taskSpec('uploads', { runtime: { prepare: [{ step }] }, numSamples: 2 });
      const { task } = await scheduler.client.submitTask({ spec });
      const shown = task?.spec?.runtime?.prepare[0]?.step;
      expect(shown?.case === 'uploadFile' && shown.value.content.length).to.equal(0);
      await groupOf(bus, 'uploads');
      const prepares = node.taken.filter(({ kind }) => kind.case === 'prepare');
      expect(prepares).to.have.length(2);
      for (const { kind } of prepares) {
        const got = kind.case === 'prepare' ? kind.value.runtime?.prepare[0]?.step : undefined;
        expect(got?.case === 'uploadFile' && Buffer.from(got.value.content).equals(content)).to.equal(true);
      }
      expect((await scheduler.client.submitTask({ spec })).sessionIds).to.have.length(2);
      content[5] = 8;
      expect((await refusal(scheduler.client.submitTask({ spec }))).reason).to.equal('TASK_EXISTS');
    });

    it('stores the files of tasks once, and nothing of what their work carried', async () => {
      await using node = await startFakeNode(nats.url);
      const content = new Uint8Array(300 * 1024).fill(7);
      const step = { case: 'uploadFile' as const, value: { target: '/data/big', content } };
      const skill = { target: 'adding/SKILL.md', content: new Uint8Array([35]) };
      const more = { runtime: { prepare: [{ step }] }, numSamples: 2 };
      for (const taskId of ['epoch-1', 'epoch-2']) {
        const own = {
          ...{ instruction: `in ${taskId}`, harness: { name: 'claude_code', skills: [skill] } },
          evaluator: { strategy: 'harbor', files: [{ ...skill, target: 'test.sh' }] },
        };
        await scheduler.client.submitTask({ spec: taskSpec(taskId, { ...more, ...own }) });
        await groupOf(bus, taskId);
      }
      await until('four trajectories and one blob of files are left', async () => {
        const { state } = await bus.jsm.streams.info(STREAMS.blobs.name, {
          subjects_filter: 'polar.v1.blob.*.0',
        });
        return Object.keys(state.subjects ?? {}).length === 5;
      });
      const runs = node.taken.flatMap(({ kind }) => (kind.case === 'run' ? [kind.value] : []));
      expect(runs.map(({ instruction }) => instruction).sort()).to.deep.equal(
        ['epoch-1', 'epoch-1', 'epoch-2', 'epoch-2'].map((taskId) => `in ${taskId}`),
      );
      for (const { harness } of runs) {
        expect(harness?.skills.map(({ content: text }) => [...text])).to.deep.equal([[35]]);
      }
      const graded = node.taken.flatMap(({ kind }) => (kind.case === 'evaluate' ? [kind.value] : []));
      const tests = graded.map(({ evaluator }) => evaluator?.files.map(({ content: text }) => [...text]));
      expect(tests).to.deep.equal(Array(4).fill([[35]]));
    });
  });

  describe('reading', () => {
    it('pages through tasks and sessions', async () => {
      for (let i = 0; i < 5; i++)
        await scheduler.client.submitTask({ spec: taskSpec(`t${i}`, { numSamples: 5 }) });
      const first = await scheduler.client.listTasks({ pageSize: 2 });
      const second = await scheduler.client.listTasks({ pageSize: 2, pageToken: first.nextPageToken });
      const third = await scheduler.client.listTasks({ pageSize: 2, pageToken: second.nextPageToken });
      const ids = [first, second, third].flatMap(({ tasks }) => tasks.map(({ spec }) => spec?.taskId));
      expect(ids).to.deep.equal(['t4', 't3', 't2', 't1', 't0']);
      expect(third.nextPageToken).to.equal('');

      const page = await scheduler.client.listSessions({ taskId: 't0', pageSize: 3 });
      const rest = await scheduler.client.listSessions({
        taskId: 't0',
        pageSize: 3,
        pageToken: page.nextPageToken,
      });
      expect([...page.sessions, ...rest.sessions].map(({ sampleIndex }) => sampleIndex)).to.deep.equal([
        0, 1, 2, 3, 4,
      ]);
      expect(rest.nextPageToken).to.equal('');
      expect(
        (await refusal(scheduler.client.listSessions({ taskId: 't0', pageSize: 1001 }))).reason,
      ).to.equal('INVALID_REQUEST');
      expect(
        (await refusal(scheduler.client.listSessions({ taskId: 't0', pageToken: 'x' }))).reason,
      ).to.equal('INVALID_REQUEST');
      expect((await refusal(scheduler.client.listTasks({ pageToken: 'gone' }))).reason).to.equal(
        'INVALID_REQUEST',
      );
      expect((await refusal(scheduler.client.getTask({ taskId: 'none' }))).reason).to.equal('NOT_FOUND');
      expect((await refusal(scheduler.client.getSession({ sessionId: 's-1-99' }))).reason).to.equal(
        'NOT_FOUND',
      );
    });

    it('watches a task: present state first, then changes, and ends with it', async () => {
      const { sessionIds } = await scheduler.client.submitTask({
        spec: taskSpec('watched', { numSamples: 2 }),
      });
      const seen: Session[] = [];
      let node: AsyncDisposable | undefined;
      for await (const { session, task } of scheduler.client.watchTask({ taskId: 'watched' })) {
        if (session === undefined) continue;
        expect(task?.spec?.taskId).to.equal('watched');
        seen.push(session);
        if (seen.length === 2) node = await startFakeNode(nats.url);
      }
      await node?.[Symbol.asyncDispose]();
      expect(seen.slice(0, 2).map(({ sessionId }) => sessionId)).to.deep.equal(sessionIds);
      const states = seen.filter(({ sampleIndex }) => sampleIndex === 0).map(({ state }) => state);
      const { QUEUED, PREPARING, READY, RUNNING, FINISHING, ENDED } = SessionState;
      expect([...new Set(states)]).to.deep.equal([QUEUED, PREPARING, READY, RUNNING, FINISHING, ENDED]);
      expect(states.at(-1)).to.equal(ENDED);

      const again: SessionState[] = [];
      for await (const { session } of scheduler.client.watchTask({ taskId: 'watched' })) {
        if (session !== undefined) again.push(session.state);
      }
      expect(again).to.deep.equal([ENDED, ENDED]);
      const none = scheduler.client.watchTask({ taskId: 'none' })[Symbol.asyncIterator]();
      expect((await refusal(none.next())).reason).to.equal('NOT_FOUND');
    });
  });
});
