import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { startServer } from '../../services/common/server.ts';
import { leaderClient } from './leader-client.ts';

/** A first call takes longer on a busy machine. */
const TRY_MS = 1_000;

describe('a client of several schedulers', () => {
  it('asks the next one where the first says nothing, as a machine that is gone', async () => {
    const gone = createServer(() => {}).listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const server = await startServer({
      ...{ host: '127.0.0.1', port: 0, services: [RolloutService.typeName] },
      routes: (router) => {
        router.service(RolloutService, {
          listNodes: () => ({ nodes: [{ nodeId: 'a' }] }),
        });
      },
    });
    const urls = [(gone.address() as AddressInfo).port, server.port].map(
      (port) => `http://127.0.0.1:${port}`,
    );
    const { nodes } = await leaderClient(urls.join(), TRY_MS).listNodes({});
    expect(nodes.map(({ nodeId }) => nodeId)).to.deep.equal(['a']);
    gone.closeAllConnections();
    gone.close();
    await server.close();
  });
});
