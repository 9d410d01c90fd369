// Callbacks, with a real nats-server and a receiver over HTTP: signed, tried again, given up, and only where they may go.
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { TaskSpec } from '../../gen/ts/polar/common/v1/task_pb.js';
import { CallbackState } from '../../gen/ts/polar/scheduler/v1/callback_state_pb.js';
import { RetryOnly } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { spawnScheduler, startScheduler, type TestScheduler, taskSpec, until } from '../support/scheduler.ts';

const SECRET = 'callback-key';
const TOPOLOGY = { rollout: { callback_hosts: ['127.0.0.1', 'LocalHost:1'] } };

/** A callback that came. */
interface Told {
  readonly id: string;
  readonly signature: string;
  readonly body: string;
}

/** Answers with the statuses given, in order, then with 200; or as it is told to of what came so far. */
async function startReceiver(
  statuses: readonly number[] | ((told: readonly Told[]) => number),
): Promise<{ url: string; told: Told[] } & AsyncDisposable> {
  const left = typeof statuses === 'function' ? [] : [...statuses];
  const told: Told[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const header = (name: string): string => String(request.headers[name] ?? '');
      const body = Buffer.concat(chunks).toString();
      told.push({ id: header('polar-event-id'), signature: header('polar-signature'), body });
      const status = typeof statuses === 'function' ? statuses(told) : (left.shift() ?? 200);
      response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    told,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('scheduler callbacks', () => {
  let nats: TestNats;
  let scheduler: TestScheduler;
  beforeEach(async () => {
    nats = await startNats();
    const topology = { ...TOPOLOGY, callbackSecret: SECRET };
    scheduler = await startScheduler(nats.url, { callbackPauseMs: 20 }, topology);
  });
  afterEach(async () => {
    await scheduler[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  const submit = async (spec: TaskSpec): Promise<string[]> =>
    (await scheduler.client.submitTask({ spec })).sessionIds;

  it("of a receiver that does not answer hold up nobody else's", async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    try {
      await using receiver = await startReceiver([]);
      await using _node = await startFakeNode(nats.url);
      const urls = [...Array(100).fill(`http://127.0.0.1:${port}/hook`), receiver.url];
      const tasks = urls.map((callbackUrl, i) => ({ spec: taskSpec(`t${i}`, { callbackUrl }) }));
      await scheduler.client.submitTasks({ tasks });
      await until('all have ended', async () => {
        const all = await scheduler.client.listTasks({});
        return all.tasks.every(({ endTime }) => endTime !== undefined);
      });
      await until('the other one is told', () => receiver.told.length === 1);
    } finally {
      silent.closeAllConnections();
      silent.close();
    }
  });

  it('are signed, tried again until the receiver takes them, and follow no redirect', async () => {
    await using receiver = await startReceiver([500, 302]);
    await using _node = await startFakeNode(nats.url);
    const ids = await submit(taskSpec('told', { numSamples: 2, callbackUrl: receiver.url }));
    await until('it is taken', async () => {
      const { task } = await scheduler.client.getTask({ taskId: 'told' });
      return task?.callbackState === CallbackState.DELIVERED;
    });
    expect(receiver.told).to.have.length(3);
    expect(new Set(receiver.told.map(({ body }) => body)).size).to.equal(1);
    const { id, signature, body } = receiver.told[2]!;
    expect(id).to.equal('told:g0');
    const seconds = /^t=(\d+),/.exec(signature)?.[1];
    const digest = createHmac('sha256', SECRET).update(`${seconds}.${body}`).digest('hex');
    expect(signature).to.equal(`t=${seconds},v1=${digest}`);
    const event = JSON.parse(body);
    expect(event).to.deep.include({
      type: 'task.ended',
      task_id: 'told',
      group_id: 'g0',
      mean_reward: 0.5,
    });
    expect(event.sessions_by_outcome).to.deep.equal({ completed: 2 });
    expect(event.sessions.map((one: { session_id: string }) => one.session_id)).to.deep.equal(ids);
  });

  it('are of cancelled tasks too, and are given up in the end', async () => {
    await using receiver = await startReceiver(Array.from({ length: 100 }, () => 503));
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url, { callbackPauseMs: 1 }, TOPOLOGY);
    await submit(taskSpec('refused', { callbackUrl: receiver.url }));
    await scheduler.client.cancelTask({ taskId: 'refused' });
    await until('it is given up', async () => {
      const { task } = await scheduler.client.getTask({ taskId: 'refused' });
      return task?.callbackState === CallbackState.GIVEN_UP;
    });
    expect(receiver.told).to.have.length(10);
    expect(receiver.told[0]?.signature).to.equal('');
    expect(JSON.parse(receiver.told[0]!.body).sessions_by_outcome).to.deep.equal({ cancelled: 1 });
  });

  it('are sent after the scheduler was killed', async () => {
    await using receiver = await startReceiver([503]);
    await using server = await startNats();
    await using other = await spawnScheduler(server.url, TOPOLOGY);
    await other.client.submitTask({ spec: taskSpec('durable', { callbackUrl: receiver.url }) });
    await other.client.cancelTask({ taskId: 'durable' });
    await until('it was refused once', () => receiver.told.length > 0);
    await other.kill();
    await other.start();
    await until('it is taken', async () => {
      const { task } = await other.client.getTask({ taskId: 'durable' });
      return task?.callbackState === CallbackState.DELIVERED;
    });
    expect(new Set(receiver.told.map(({ id }) => id))).to.deep.equal(new Set(['durable:g0']));
  });

  it('are sent after the scheduler was killed, of sessions too that go again by then', async () => {
    await using receiver = await startReceiver([503, 503]);
    await using server = await startNats();
    await using other = await spawnScheduler(server.url, TOPOLOGY);
    await other.client.submitTask({ spec: taskSpec('again', { callbackUrl: receiver.url }) });
    await other.client.cancelTask({ taskId: 'again' });
    await until('it was refused once', () => receiver.told.length > 0);
    await other.client.retrySessions({ taskId: 'again', only: RetryOnly.MISSING });
    await other.kill();
    const before = receiver.told.length;
    await other.start();
    await until('it is told', () => receiver.told.length > before);
    expect(new Set(receiver.told.map(({ id }) => id))).to.deep.equal(new Set(['again:g0']));
    expect(new Set(receiver.told.map(({ body }) => body)).size).to.equal(1);
    await other.client.cancelTask({ taskId: 'again' });
    await until('both are told', () => receiver.told.some(({ id }) => id === 'again:g1'));
  });

  it('are tried no more often of a group when that of one before is taken meanwhile', async () => {
    const ofSecond = (told: readonly Told[]): Told[] => told.filter(({ id }) => id === 'twice:g1');
    await using receiver = await startReceiver((told) =>
      told.at(-1)?.id === 'twice:g0' && ofSecond(told).length > 0 ? 200 : 503,
    );
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url, { callbackPauseMs: 3 }, TOPOLOGY);
    await submit(taskSpec('twice', { callbackUrl: receiver.url }));
    await scheduler.client.cancelTask({ taskId: 'twice' });
    await until('it was refused once', () => receiver.told.length > 0);
    await scheduler.client.retrySessions({ taskId: 'twice', only: RetryOnly.MISSING });
    await scheduler.client.cancelTask({ taskId: 'twice' });
    await until('the second is given up', async () => {
      const { task } = await scheduler.client.getTask({ taskId: 'twice' });
      return task?.callbackState === CallbackState.GIVEN_UP;
    });
    expect(ofSecond(receiver.told)).to.have.length(10);
  });

  it('are refused to anything but http and https, and to hosts inside that are not named', async () => {
    const urls = ['file:///etc/passwd', 'ftp://h/x', 'no url', 'http://user:pass@h/'];
    urls.push('http://localhost:2/', 'http://169.254.169.254/latest', 'http://[::1]/', 'https://10.0.0.1/');
    for (const callbackUrl of urls) {
      const refused = await scheduler.client
        .submitTask({ spec: taskSpec('refused', { callbackUrl }) })
        .catch((error) => error);
      expect(refused.reason).to.equal('INVALID_TASK');
      expect(refused.fields.map(({ field }: { field: string }) => field)).to.deep.equal(['callback_url']);
    }
  });

  it('are given up at once where their host may not be called any more', async () => {
    await using receiver = await startReceiver([]);
    await submit(taskSpec('inside', { callbackUrl: 'http://localhost:1/hook' }));
    await submit(taskSpec('named', { callbackUrl: receiver.url }));
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url);
    await scheduler.leading;
    for (const taskId of ['inside', 'named']) {
      await scheduler.client.cancelTask({ taskId });
      await until('it is given up', async () => {
        const { task } = await scheduler.client.getTask({ taskId });
        return task?.callbackState === CallbackState.GIVEN_UP;
      });
    }
    expect(receiver.told).to.deep.equal([]);
  });
});
