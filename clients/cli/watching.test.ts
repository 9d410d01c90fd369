import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { expect } from 'chai';
import { type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { followTask } from './watching.ts';

describe('following a task', () => {
  it('asks again where a scheduler says nothing any more', async () => {
    const stop = new AbortController();
    let asked = 0;
    // A machine that is gone neither answers nor ends its connections.
    const silent = createServer(() => ++asked === 2 && stop.abort()).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    expect(await followTask(url, 'task', () => {}, stop.signal, 30)).to.deep.equal([]);
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
});
