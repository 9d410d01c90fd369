// Sessions whose harness runs elsewhere: opened, called, closed, and in the trainer's stream as any other. First a scheduler
// with a node that answers over NATS, then the whole mesh, every part of which is killed meanwhile.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import type { ServiceName } from '../../clients/cli/services.ts';
import { Outcome, type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type TaskSpec, TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { CapabilitySchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { TrajectoryBatch } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import type { OpenSessionResponse } from '../../gen/ts/polar/scheduler/v1/external_session_pb.js';
import { RolloutService, WaitReason } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient, createServiceClient } from '../../services/common/client.ts';
import { asPolarError } from '../../services/common/errors.ts';
import { newId, sha256, sha256Half } from '../../services/common/ids.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { polar, ROOT } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeNode } from '../support/fake-node.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { groupOf, sessionsOf, startScheduler, type TestScheduler, taskSpec } from '../support/scheduler.ts';
import { spoken } from '../support/tasks.ts';

type Rollout = Client<typeof RolloutService>;
type SpecInit = MessageInitShape<typeof TaskSpecSchema>;

function externalTask(taskId: string, more: SpecInit = {}): TaskSpec {
  const base: SpecInit = {
    taskId,
    instruction: 'Count.',
    harness: { name: 'external', modelName: 'm' },
    builder: { strategy: 'prefix_merging' },
  };
  return create(TaskSpecSchema, Object.assign(base, more));
}

/** A trainer whose agent is in its own process: a group of two, and what came of it. */
const TRAINER = `
import json, sys, urllib.request, polar_mesh
with polar_mesh.Client(sys.argv[1], sys.argv[2]) as client:
    for sample in range(2):
        with client.capture("python", model="m", num_samples=2) as session:
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": session.instruction}]})
            headers = {"authorization": "Bearer " + session.api_key, "content-type": "application/json"}
            request = urllib.request.Request(session.base_url + "/chat/completions", body.encode(), headers)
            assert json.load(urllib.request.urlopen(request))["choices"]
            session.reward = sample / 2
    batch = client.stream("python", task_id="python").next(timeout_s=30)
    print(json.dumps([[one.sample_index, one.outcome, one.reward, one.stats.calls] for one in batch.trajectories]))
    batch.ack()
    try:
        client.open_session("python")
    except polar_mesh.PolarError as error:
        print(error.reason)
`;

/** What names an open attempt. */
const its = ({ session }: OpenSessionResponse) => ({
  sessionId: session?.sessionId ?? '',
  attempt: session?.attempt ?? 0,
});

const refusal = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'none',
    (error) => asPolarError(error).reason,
  );

describe('sessions that run elsewhere', () => {
  let nats: TestNats;
  let bus: Bus;
  let scheduler: TestScheduler;
  let rollout: Rollout;
  const start = async (): Promise<void> => {
    scheduler = await startScheduler(nats.url, { stageGraceMs: 0 });
    rollout = scheduler.client;
  };
  before(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
    await start();
  });
  after(async () => {
    await scheduler?.[Symbol.asyncDispose]();
    await bus?.close();
    await nats?.[Symbol.asyncDispose]();
  });

  /** Digest of the key that opens the LLM proxy for an attempt; undefined: none does. */
  const keyOf = async (session: Session | undefined): Promise<string | undefined> => {
    const bucket = await bus.kv('capabilities');
    const found = await bucket.get(`${session?.sessionId}.${session?.attempt}`);
    return found?.operation === 'PUT' ? fromBinary(CapabilitySchema, found.value).digest : undefined;
  };
  const only = async (taskId: string): Promise<Session | undefined> => (await sessionsOf(rollout, taskId))[0];
  const open = (taskId: string, requestId = ''): Promise<OpenSessionResponse> =>
    rollout.openSession({ taskId, requestId });

  it('wait for who opens them, and stand in no queue', async () => {
    await rollout.submitTask({ spec: externalTask('waits') });
    const { waiting } = await rollout.getSession({ sessionId: (await only('waits'))?.sessionId ?? '' });
    expect(waiting?.reason).to.equal(WaitReason.OPEN);
    const { queues } = await rollout.listQueues({});
    expect(queues.map(({ waiting, running }) => waiting + running)).to.deep.equal(queues.map(() => 0));
    expect(await refusal(open('waits'))).to.equal('NO_NODE');
    const status = await polar(['status', '--rollout-url', scheduler.url]);
    expect(status.stdout).to.match(/^no node sends heartbeats, so that no session can begin/);
    const captured = await polar(['capture', '--rollout-url', scheduler.url, '--', 'true']);
    expect(captured.stderr).to.contain('NO_NODE');
    const { tasks } = await rollout.listTasks({ summary: true });
    const own = tasks.find((task) => task.taskId.startsWith('capture-'));
    expect(own?.sessionsByOutcome, 'which nobody else would open').to.deep.equal({ cancelled: 1 });
    const { task } = await rollout.getTask({ taskId: own?.taskId ?? '' });
    expect(task?.spec?.budgets?.queue?.seconds, 'where nobody cancels it either').to.equal(300n);
    expect(task?.spec?.maxAttempts).to.equal(1);
    expect(await refusal(open('nothing'))).to.equal('NOT_FOUND');
    expect(await refusal(open('waits', 'short'))).to.equal('INVALID_REQUEST');
    await rollout.submitTask({ spec: taskSpec('started-here') });
    expect(await refusal(open('started-here'))).to.equal('INVALID_REQUEST');
    await Promise.all(['waits', 'started-here'].map((taskId) => rollout.cancelTask({ taskId })));
    expect(await refusal(open('waits'))).to.equal('NO_SESSION_WAITS');
  });

  it('have one key, for a replay through a restart too, of which a digest is stored', async () => {
    await using _ = await startFakeNode(nats.url);
    await eventually('it is seen', async () => (await rollout.listNodes({})).nodes.length > 0);
    await rollout.submitTask({ spec: externalTask('key', { numSamples: 2 }) });
    const requestId = randomUUID();
    const [first, same] = await Promise.all([open('key', requestId), open('key', requestId)]);
    expect(same).to.deep.equal(first);
    expect(await keyOf(first.session)).to.equal(sha256(first.apiKey));
    expect(first.env).to.include({
      OPENAI_BASE_URL: first.openaiUrl,
      OPENAI_API_KEY: first.apiKey,
      ANTHROPIC_BASE_URL: first.baseUrl,
      POLAR_INSTRUCTION: 'Count.',
    });
    await scheduler[Symbol.asyncDispose]();
    await start();
    await eventually(
      'its node is seen',
      async () => (await rollout.listNodes({})).nodes[0]?.healthy === true,
    );
    expect(await open('key', requestId)).to.deep.equal(first);
    expect((await rollout.listNodes({})).nodes[0]).to.include({ open: 1, running: 0 });
    const end = { ...its(first), reward: 0.5 };
    const { session } = await rollout.closeSession(end);
    expect(session?.state).to.be.oneOf([SessionState.RUNNING, SessionState.FINISHING, SessionState.ENDED]);
    await rollout.closeSession(end);
    expect(await refusal(rollout.closeSession({ ...end, reward: 1 }))).to.equal('SESSION_CLOSED');
    expect(await refusal(open('key', requestId))).to.equal('SESSION_CLOSED');
    const second = await open('key');
    await rollout.closeSession({ ...its(second), outcome: Outcome.HARNESS_ERROR, message: 'it fell over' });
    const { sessions } = await groupOf(bus, 'key');
    expect(sessions.map(({ reward, outcome }) => [reward, Outcome[outcome]])).to.deep.equal([
      [0.5, 'COMPLETED'],
      [undefined, 'HARNESS_ERROR'],
    ]);
    expect(sessions[1]?.failure?.message).to.equal('it fell over');
    // From the archive, too.
    await eventually('it is archived', async () => (await refusal(open('key'))) === 'NO_SESSION_WAITS');
    expect(await refusal(rollout.closeSession(end))).to.equal('none');
  });

  it('end with their time where nobody closes them: built, without a reward', async () => {
    await using node = await startFakeNode(nats.url);
    await eventually('it is seen', async () => (await rollout.listNodes({})).nodes[0]?.healthy === true);
    const budgets = { run: durationFromMs(300) };
    const evaluator = { strategy: 'session_completed' };
    await rollout.submitTask({ spec: externalTask('late', { budgets, evaluator }) });
    const opened = await open('late');
    const { sessions } = await groupOf(bus, 'late');
    expect(sessions.map(({ outcome, reward }) => [outcome, reward])).to.deep.equal([
      [Outcome.TIMEOUT, undefined],
    ]);
    expect(sessions[0]?.trajectory).not.to.equal(undefined);
    expect(node.taken.map(({ kind }) => kind.case)).to.deep.equal(['close', 'build']);
    expect(await refusal(rollout.closeSession(its(opened)))).to.equal('SESSION_CLOSED');
  });

  it('have no key any more where they are lost with their node or cancelled, and what was lost is opened again', async () => {
    const bootId = newId('boot');
    const node = await startFakeNode(nats.url, { bootId });
    await eventually('it is seen', async () => (await rollout.listNodes({})).nodes[0]?.bootId === bootId);
    await rollout.submitTask({ spec: externalTask('cut', { numSamples: 2 }) });
    const [first, second] = [await open('cut'), await open('cut')];
    await rollout.cancelSession({ sessionId: its(first).sessionId });
    await eventually('its key is gone', async () => (await keyOf(first.session)) === undefined);
    await node[Symbol.asyncDispose]();
    // Sandboxes are gone when their manager begins anew; what runs elsewhere goes on.
    await using again = await startFakeNode(nats.url);
    await eventually('it began anew', async () => {
      return (await rollout.listNodes({})).nodes[0]?.bootId === again.bootId;
    });
    expect(await keyOf(second.session)).to.equal(sha256(second.apiKey));
    await again.leave();
    await eventually('its key is gone', async () => (await keyOf(second.session)) === undefined);
    const lost = await rollout.getSession({ sessionId: its(second).sessionId });
    expect(lost.session?.failure?.reason).to.equal('SHUTTING_DOWN');
    expect(lost.waiting?.reason).to.equal(WaitReason.OPEN);
    await using other = await startFakeNode(nats.url, { id: 'node-2' });
    await eventually('it is there', async () => (await rollout.listNodes({})).nodes.length === 2);
    const third = await open('cut');
    expect(third.session).to.include({ sessionId: its(second).sessionId, attempt: 2, nodeId: other.id });
    expect(await refusal(rollout.closeSession(its(second)))).to.equal('SESSION_CLOSED');
    await rollout.closeSession({ ...its(third), reward: 1 });
    const { sessions } = await groupOf(bus, 'cut');
    expect(sessions.map(({ reward }) => reward)).to.deep.equal([undefined, 1]);
  });
});

describe('sessions that run elsewhere, through the mesh', function () {
  this.timeout(120_000);
  let mesh: Mesh;
  let rollout: Rollout;
  before(async () => {
    mesh = await startMesh({ defaultBackend: 'process' });
    rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    // Services are ready before the scheduler has heard of their node.
    await eventually('the node is heard', async () => (await rollout.listNodes({})).nodes.length > 0);
  });
  after(() => mesh?.[Symbol.asyncDispose]());

  const batchOf = async (taskId: string): Promise<TrajectoryBatch> => {
    const trajectories = createPlainClient(TrajectoryService, mesh.reconstructorUrl);
    const stream = trajectories.streamTrajectories({ consumer: sha256Half(taskId), taskId });
    for await (const { batch } of stream) if (batch !== undefined) return batch;
    throw new Error('the stream ended');
  };

  /** A model call at the address that was handed out: its status, 0 where nobody answers, and its id. */
  const callOf = async (
    { openaiUrl, apiKey }: OpenSessionResponse,
    said: readonly string[],
    stream = false,
  ): Promise<{ status: number; id: string }> => {
    const messages = said.map((content) => ({ role: 'user', content }));
    try {
      const response = await fetch(`${openaiUrl}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', messages, stream }),
      });
      await response.text();
      return { status: response.status, id: response.headers.get('polar-call-id') ?? '' };
    } catch {
      return { status: 0, id: '' };
    }
  };
  const called = async (opened: OpenSessionResponse, ...said: string[]): Promise<number> =>
    (await callOf(opened, said)).status;

  it('are a group in the stream, each with the reward that its caller gave', async () => {
    await rollout.submitTask({ spec: externalTask('group', { numSamples: 2 }) });
    const [first, second] = [
      await rollout.openSession({ taskId: 'group' }),
      await rollout.openSession({ taskId: 'group' }),
    ];
    for (const [opened, ...said] of [
      [first, 'a'],
      [first, 'a', 'b'],
      [second, 'a'],
    ] as const)
      expect(await called(opened, ...said)).to.equal(200);
    await rollout.closeSession({ ...its(first), reward: 1 });
    await rollout.closeSession({ ...its(second), outcome: Outcome.HARNESS_ERROR, reward: -0.5 });
    const { trajectories } = await batchOf('group');
    expect(trajectories.map(({ outcome, reward, stats }) => [outcome, reward, stats?.calls])).to.deep.equal([
      [Outcome.COMPLETED, 1, 2],
      [Outcome.HARNESS_ERROR, -0.5, 1],
    ]);
    expect(await called(first, 'late')).to.equal(401);
  });

  it('have rewards of single traces by the ids that come with the replies, and by no others', async () => {
    const builder = { strategy: 'per_request' };
    await rollout.submitTask({ spec: externalTask('traces', { numSamples: 2, builder }) });
    const [first, second] = [
      await rollout.openSession({ taskId: 'traces' }),
      await rollout.openSession({ taskId: 'traces' }),
    ];
    const ids = [await callOf(first, ['a']), await callOf(first, ['b'], true)].map(({ id }) => id);
    const traceRewards = Object.fromEntries(ids.map((id, i) => [id, i / 2]));
    await callOf(second, ['a']);
    await rollout.closeSession({ ...its(first), reward: 1, traceRewards });
    await rollout.closeSession({ ...its(second), reward: 1, traceRewards });
    const { trajectories } = await batchOf('traces');
    expect(trajectories.map(({ outcome, reward }) => [outcome, reward])).to.deep.equal([
      [Outcome.COMPLETED, 1],
      [Outcome.TASK_ERROR, undefined],
    ]);
    expect(trajectories[0]?.traces.map(({ reward }) => reward)).to.deep.equal([0, 0.5]);
    expect(trajectories[1]?.failure?.message).to.contain(
      `trace_rewards.${ids[0]}: the session has no such call`,
    );
  });

  it('are worked on in the process of a trainer in Python', async () => {
    const args = ['-c', TRAINER, mesh.schedulerUrl, mesh.reconstructorUrl];
    const env = { PYTHONPATH: join(ROOT, 'clients/python/src') };
    const { stdout } = await promisify(execFile)(join(ROOT, '.venv/bin/python'), args, { env });
    const [group = '', refused] = stdout.trim().split('\n');
    expect(JSON.parse(group)).to.deep.equal([
      [0, 'completed', 0, 1],
      [1, 'completed', 0.5, 1],
    ]);
    expect(refused).to.equal('NO_SESSION_WAITS');
  });

  it('are opened for a command, and for a shell', async () => {
    const call = spoken('a');
    const command = `test "$POLAR_INSTRUCTION" = 'do it' && ${call} && echo 0.75 > ${mesh.folder}/reward; exit 3`;
    const at = ['capture', '-c', mesh.topologyFile];
    const file = ['--reward-file', join(mesh.folder, 'reward')];
    const ran = await polar([...at, '--instruction', 'do it', ...file, '--', 'sh', '-c', command]);
    expect(ran.code, ran.stderr).to.equal(3);
    const [sessionId = ''] = /s-[\w-]+/.exec(ran.stderr) ?? [];
    const taskOf = async (id: string) => (await rollout.getSession({ sessionId: id })).session?.taskId ?? '';
    const [failed] = (await batchOf(await taskOf(sessionId))).trajectories;
    expect(failed).to.include({ outcome: Outcome.HARNESS_ERROR, reward: 0.75 });
    expect(failed?.failure?.message).to.contain('exit code 3');
    const shown = await polar([...at, '--model', 'm']);
    const script = `${shown.stdout}\n${call} && printf %s "$SESSION_ID"`;
    const { stdout: id } = await promisify(execFile)('sh', ['-c', script]);
    const closed = await polar([...at, '--close', id, '--reward', '1']);
    expect(closed.code, closed.stderr).to.equal(0);
    const [completed] = (await batchOf(await taskOf(id))).trajectories;
    expect(completed).to.include({ outcome: Outcome.COMPLETED, reward: 1 });
    const logs = (asked: string) => polar(['logs', '-c', mesh.topologyFile, asked]);
    expect((await logs(id)).stderr).to.contain('its harness runs elsewhere');
    const taskId = await taskOf(id);
    expect((await logs(taskId)).stderr).to.contain(`${taskId} is a task: name one of its sessions, ${id}`);
    const none = await polar([...at, '--', 'no-such-command']);
    expect(none.code).to.equal(127);
    expect(none.stderr).to.match(/is cancelled: spawn no-such-command ENOENT/);
  });

  it("are opened with curl as the task file's page says", async () => {
    const page = readFileSync(join(ROOT, 'docs/task-file.md'), 'utf8');
    const block = /<!-- tested: external -->\n```sh\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    expect(block).to.contain('http://127.0.0.1:8080');
    await rollout.submitTask({ spec: externalTask('my-group') });
    const script = block.replace('http://127.0.0.1:8080', mesh.schedulerUrl);
    await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script]);
    const [trajectory] = (await batchOf('my-group')).trajectories;
    expect([trajectory?.outcome, trajectory?.reward, trajectory?.stats?.calls]).to.deep.equal([
      ...[Outcome.COMPLETED, 0.5, 1],
    ]);
  });

  it('outlive the death of everything that has a part in them', async () => {
    await rollout.submitTask({ spec: externalTask('killed') });
    const requestId = randomUUID();
    const opened = await rollout.openSession({ taskId: 'killed', requestId });
    expect(await called(opened, 'a')).to.equal(200);
    const again = (...names: ServiceName[]) => Promise.all(names.map((name) => mesh.start(name)));
    await rollout.submitTask({
      spec: externalTask('gave-up', { evaluator: { strategy: 'session_completed' } }),
    });
    const gaveUp = its(await rollout.openSession({ taskId: 'gave-up' }));
    await mesh.kill('llm-proxy');
    expect(await called(opened, 'a', 'b')).to.equal(0);
    // One after the other: a node that is silent for long is given up, and a busy machine starts two services slowly.
    await mesh.kill('runtime-prewarm');
    await again('runtime-prewarm');
    await again('llm-proxy');
    await eventually('its proxy answers', async () => (await called(opened, 'a', 'b')) === 200);
    // An agent that could not call, and did not try again, is not to blame.
    await rollout.closeSession({ ...gaveUp, outcome: Outcome.HARNESS_ERROR });
    const lost = async () => (await rollout.getSession(gaveUp)).session;
    await eventually('it waits again', async () => (await lost())?.state === SessionState.QUEUED);
    expect((await lost())?.failure?.reason).to.equal('PROXY_UNAVAILABLE');
    const gone = join(mesh.folder, 'gone');
    const wait = `touch ${gone}.on; while [ ! -e ${gone} ]; do sleep 0.05; done`;
    const capture = polar(['capture', '-c', mesh.topologyFile, '--reward', '1', '--', 'sh', '-c', wait]);
    await eventually('its command runs', () => existsSync(`${gone}.on`));
    await mesh.kill('harness-executor');
    await rollout.closeSession({ ...its(opened), reward: 0.25 });
    await mesh.kill('scheduler');
    writeFileSync(gone, '');
    await again('scheduler', 'harness-executor');
    const captured = await capture;
    expect(captured.code, captured.stderr).to.equal(0);
    expect(captured.stderr).to.contain('is closed with reward 1');
    const reopened = rollout.openSession({ taskId: 'killed', requestId });
    expect(await refusal(reopened)).to.be.oneOf(['SESSION_CLOSED', 'NO_SESSION_WAITS']);
    const [trajectory] = (await batchOf('killed')).trajectories;
    expect(trajectory).to.include({ outcome: Outcome.COMPLETED, reward: 0.25, attempt: 1 });
    expect(trajectory?.stats?.calls).to.be.at.least(2);
  });
});
