// A browser that leaves: what it had asked for ends at the mesh, too.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createClient, createRouterTransport, type UnaryRequest } from '@connectrpc/connect';
import { expect } from 'chai';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { ProxyService } from '../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { RPC_TIMEOUT_MS } from '../../services/common/limits.ts';
import { eventually } from '../../test/support/eventually.ts';
import { call, stream } from './page/rpc.js';
import { type DashboardMesh, limited } from './rpcs.ts';
import { type RunningDashboard, startDashboard } from './server.ts';

const ROLLOUT = 'polar.scheduler.v1.RolloutService';
const READS = ['ListTasks', 'GetTask', 'ListSessions', 'GetSession', 'ListNodes', 'ListQueues'];
const CHANGES = ['CancelTask', 'CancelSession', 'DrainNode'];
const METHODS = [
  ...[...READS, ...CHANGES].map((name) => `${ROLLOUT}/${name}`),
  'polar.llm_proxy.v1.ProxyService/ListEngines',
  'polar.harness_executor.v1.HarnessService/GetSessionLogs',
];

describe('dashboard calls', () => {
  let silent: Server;
  let dashboard: RunningDashboard;
  /** Calls in progress at a mesh that never answers. */
  const calls = new Set<string>();
  before(async () => {
    silent = createServer((request, response) => {
      const path = request.url ?? '';
      calls.add(path);
      response.on('close', () => calls.delete(path));
    });
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const node = {
      proxy: createPlainClient(ProxyService, url),
      harness: createPlainClient(HarnessService, url),
    };
    const mesh = {
      rollout: createPlainClient(RolloutService, url),
      trajectories: createPlainClient(TrajectoryService, url),
      nodes: new Map([['n', node]]),
    };
    const reach = { host: '127.0.0.1', token: false, actions: true };
    dashboard = await startDashboard({ ...reach, port: 0, mesh, password: 'p' });
  });
  after(async () => {
    await dashboard.close();
    silent.closeAllConnections();
    silent.close();
  });

  for (const method of METHODS) {
    it(`${method} ends at the mesh when its browser leaves`, async () => {
      const leave = new AbortController();
      const headers = {
        ...{ 'content-type': 'application/json', 'connect-protocol-version': '1', 'polar-node': 'n' },
        authorization: `Basic ${Buffer.from('me:p').toString('base64')}`,
      };
      const url = `http://127.0.0.1:${dashboard.port}/${method}`;
      const asked = fetch(url, { method: 'POST', headers, body: '{}', signal: leave.signal });
      asked.catch(() => {});
      await eventually('the mesh is asked', () => calls.has(`/${method}`));
      leave.abort();
      // By itself the call would end after RPC_TIMEOUT_MS.
      await eventually('the mesh is left', () => !calls.has(`/${method}`), RPC_TIMEOUT_MS / 2);
    });
  }

  it('have a limit, which those that are over do not count against', async () => {
    const transport = createRouterTransport(({ service }) => {
      service(RolloutService, {
        getTask: () => ({}),
        async *watchTask({ taskId }, { signal }) {
          yield {};
          if (taskId === 'open') await once(signal, 'abort');
        },
      });
    });
    const mesh = { rollout: createClient(RolloutService, transport) } as DashboardMesh;
    const free = { host: '127.0.0.1', token: false, actions: false, password: undefined };
    const answering = await startDashboard({ ...free, port: 0, mesh: { ...mesh, nodes: new Map() } });
    const asked = { base: `http://127.0.0.1:${answering.port}` };
    const read = () => call(`${ROLLOUT}/GetTask`, {}, asked);
    const watch = (taskId: string, signal?: AbortSignal) =>
      stream(`${ROLLOUT}/WatchTask`, { taskId }, { ...asked, ...(signal && { signal }) });
    try {
      for (let i = 0; i < 30; i++) {
        const one = i % 2 === 0 ? read : () => Array.fromAsync(watch('over'));
        await Promise.all(Array.from({ length: 10 }, one));
      }
      const leave = new AbortController();
      const open = Array.from({ length: 256 }, () => watch('open', leave.signal));
      await Promise.all(open.map((one) => one.next()));
      expect(await read().catch((error) => error)).to.have.property('code', 'resource_exhausted');
      leave.abort();
      await eventually('they are over', () =>
        read().then(
          () => true,
          () => false,
        ),
      );
    } finally {
      await answering.close();
    }
  });

  it('that are over before they begin take no place of those in progress', async () => {
    const call = limited()(() => Promise.reject(new Error('asked')));
    const told = (signal: AbortSignal) =>
      call({ signal } as UnaryRequest).catch((error: Error) => error.message);
    for (let i = 0; i < 300; i++) await told(AbortSignal.abort(new Error('left')));
    expect(await told(new AbortController().signal)).to.contain('asked');
  });

  it('are refused without a password where there is a token or a change to be had', async () => {
    const bare = { host: '127.0.0.1', port: 0, mesh: {} as never, password: undefined };
    for (const more of [
      { token: true, actions: false },
      { token: false, actions: true },
    ]) {
      const refused = await startDashboard({ ...bare, ...more }).catch((error: Error) => error);
      expect(refused).to.have.property('message', 'this dashboard needs a password');
    }
  });
});
