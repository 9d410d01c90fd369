import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { expect } from 'chai';
import { Outcome, type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { startPolar } from '../../test/support/cli.ts';
import { eventually } from '../../test/support/eventually.ts';
import { followTask, followTasks } from './watching.ts';

describe('following a task', () => {
  it('that was stopped says how far it came, and by its exit code that it was stopped', async () => {
    const { server, url } = await serve((router) =>
      router.rpc(RolloutService.method.watchTask, async function* (_, { signal }) {
        const done = { outcome: Outcome.COMPLETED, stats: {} };
        yield { session: { sessionId: 'task-0', state: SessionState.ENDED, ...done }, cursor: '' };
        await once(signal, 'abort');
      }),
    );
    try {
      for (const [signal, expected] of [
        ['SIGINT', 130],
        ['SIGTERM', 143],
      ] as const) {
        const { child, stderr, ended } = startPolar(['watch', 'task', '--rollout-url', url]);
        await eventually('it follows', () => stderr().includes('task-0'));
        child.kill(signal);
        const { code, stdout } = await ended;
        expect([code, stdout.includes('task-0')]).to.deep.equal([expected, true]);
      }
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('asks again where a scheduler says nothing any more', async () => {
    const stop = new AbortController();
    let asked = 0;
    // A machine that is gone neither answers nor ends its connections.
    const silent = createServer(() => ++asked === 2 && stop.abort()).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    expect(await followTask(url, 'task', () => {}, stop.signal, { silentMs: 30 })).to.deep.equal([]);
    expect(asked).to.equal(2);
    silent.closeAllConnections();
    silent.close();
  });

  it('asks again where a scheduler ends the watch and the task goes on', async () => {
    const session = { sessionId: 'task-0', state: SessionState.RUNNING };
    let asked = 0;
    const routes = connectNodeAdapter({
      routes: (router) =>
        router
          .rpc(RolloutService.method.listSessions, () => ({ sessions: [session] }))
          .rpc(RolloutService.method.watchTask, async function* () {
            if (++asked === 2) session.state = SessionState.ENDED;
            yield { session, cursor: '1' };
          }),
    });
    const server = createServer(routes).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const told: SessionState[] = [];
      const onChange = ({ state }: Session) => void told.push(state);
      const [ended] = await followTask(url, 'task', onChange, new AbortController().signal);
      expect(ended?.state).to.equal(SessionState.ENDED);
      expect(told).to.deep.equal([SessionState.RUNNING, SessionState.ENDED]);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('follows none of several any more where one cannot be followed', async () => {
    const ended: string[] = [];
    const { server, url } = await serve((router) =>
      router.rpc(RolloutService.method.watchTask, async function* ({ taskId }, { signal }) {
        if (taskId === 'none') throw new ConnectError('there is no such task', Code.NotFound);
        yield { cursor: '1' };
        await once(signal, 'abort');
        ended.push(taskId);
      }),
    );
    const options = { signal: new AbortController().signal, contact: { isMade: false } };
    const following = followTasks(url, ['long', 'none'], () => {}, options);
    const thrown = await following.catch((error: Error) => error.message);
    expect(thrown).to.contain('there is no such task');
    while (ended.length === 0) await sleep(5);
    expect(ended).to.deep.equal(['long']);
    server.close();
  });

  it('waits for a scheduler that has answered another call, as one that is started again', async () => {
    const begun = performance.now();
    const session = { sessionId: 'task-0', state: SessionState.ENDED };
    const { server, url } = await serve((router) =>
      router
        .rpc(RolloutService.method.listSessions, () => ({ sessions: [session] }))
        .rpc(RolloutService.method.watchTask, async function* () {
          const isAway = performance.now() - begun < 2500;
          if (isAway) throw new ConnectError('not yet', Code.Unavailable);
          yield { session, cursor: '1' };
        }),
    );
    const options = { signal: new AbortController().signal, contact: { isMade: true } };
    const [[ended] = []] = await followTasks(url, ['task'], () => {}, options);
    expect(ended?.state).to.equal(SessionState.ENDED);
    server.closeAllConnections();
    server.close();
  });
});

async function serve(routes: (router: ConnectRouter) => void): Promise<{ server: Server; url: string }> {
  const server = createServer(connectNodeAdapter({ routes })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
