// GET /metrics of a service: what it counts, and who may see it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as http2Connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { AccessControl } from '../../services/common/access/access-control.ts';
import { newToken } from '../../services/common/access/tokens.ts';
import { createServiceClient } from '../../services/common/client.ts';
import { PolarError } from '../../services/common/errors.ts';
import { chosen, gauge } from '../../services/common/metrics.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';
import { metricsOf } from '../support/metrics.ts';
import { freePort } from '../support/nats.ts';

const SERVICE = 'polar.reconstructor.v1.TrajectoryService';

describe('metrics', () => {
  let folder: string;
  let server: RunningServer | undefined;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-metrics-'));
  });
  after(() => rmSync(folder, { recursive: true }));
  afterEach(() => server?.close());

  const start = async (access?: AccessControl, httpPort?: number): Promise<string> => {
    server = await startServer({
      ...{ host: '127.0.0.1', port: 0, services: [SERVICE], access },
      ...(httpPort !== undefined && { httpPort }),
      routes: (router) =>
        router.service(TrajectoryService, {
          listConsumers: () => ({ consumers: [] }),
          getTrajectory: () => {
            throw new PolarError('NOT_FOUND', 'no session');
          },
          async *streamTrajectories() {
            yield {};
          },
        }),
    });
    return `http://127.0.0.1:${server.port}`;
  };

  it('count RPCs by method and code, streams too, over HTTP/1 and HTTP/2', async () => {
    const url = await start();
    const client = createServiceClient(TrajectoryService, url);
    const count = async (method: string, code: string): Promise<number> =>
      (await metricsOf(url))
        .get('polar_rpc_ended_total')
        ?.get(`method="${SERVICE}/${method}",code="${code}"`) ?? 0;
    const before = await count('ListConsumers', 'OK');
    await client.listConsumers({});
    await client.listConsumers({});
    await client.getTrajectory({ sessionId: 's' }).catch(() => {});
    for await (const _ of client.streamTrajectories({ consumer: 'c' }));
    expect((await count('ListConsumers', 'OK')) - before).to.equal(2);
    expect(await count('GetTrajectory', 'NotFound')).to.be.at.least(1);
    expect(await count('StreamTrajectories', 'OK')).to.be.at.least(1);
    const timed = (await metricsOf(url)).get('polar_rpc_seconds_count');
    expect(timed?.get(`method="${SERVICE}/ListConsumers"`)).to.be.at.least(2);
    const session = http2Connect(url);
    const stream = session.request({ ':path': '/metrics' });
    expect(await text(stream)).to.contain('# TYPE polar_rpc_ended_total counter');
    session.close();
  });

  it('show the process, and what others keep as it is now, of all that are there', async () => {
    const url = await start();
    const shown = gauge('polar_test_things', 'Things of this test.', ['kind']);
    using _ = shown.from(() => [[{ kind: 'a' }, 2]]);
    const second = shown.from(() => [
      [{ kind: 'a' }, 3],
      [{ kind: 'b' }, 1],
    ]);
    const first = await metricsOf(url);
    expect([...(first.get('polar_test_things') ?? [])]).to.deep.equal([
      ['kind="a"', 5],
      ['kind="b"', 1],
    ]);
    second[Symbol.dispose]();
    const later = await metricsOf(url);
    expect([...(later.get('polar_test_things') ?? [])]).to.deep.equal([['kind="a"', 2]]);
    expect(first.get('process_resident_memory_bytes')?.get('')).to.be.above(10_000_000);
    const cpu = [first, later].map((one) => one.get('process_cpu_seconds_total')?.get('') ?? 0);
    expect(cpu[1]).to.be.above(cpu[0] ?? 0);
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).to.equal(405);
  });

  it('that cannot be read are one answer 500, and the service lives', async () => {
    const url = await start();
    const shown = gauge('polar_test_broken', 'What cannot be read.');
    const broken = shown.from(() => {
      throw new Error('no such thing');
    });
    const answer = await fetch(`${url}/metrics`);
    broken[Symbol.dispose]();
    expect([answer.status, await answer.text()]).to.deep.equal([
      500,
      'metrics could not be read: no such thing\n',
    ]);
    expect((await fetch(`${url}/metrics`)).status).to.equal(200);
  });

  it('show some sixty values that others choose, and count the rest as one', () => {
    const shown = chosen();
    const values = Array.from({ length: 1_000 }, (_, index) => shown(`r${index}`));
    expect(new Set(values).size).to.equal(65);
    expect([values[0], values[63], values[64], shown('r5')]).to.deep.equal(['r0', 'r63', 'other', 'r5']);
  });

  it('are for who may read, where tokens are asked for', async () => {
    const [reader, submitter] = [newToken('reader', ['read']), newToken('submitter', ['submit'])];
    const file = join(folder, 'tokens');
    writeFileSync(file, `${reader.line}\n${submitter.line}\n`);
    const url = await start(new AccessControl(file, () => {}));
    const as = (token: string) => ({ authorization: `Bearer ${token}` });
    expect((await metricsOf(url, as(reader.token))).size).to.be.above(5);
    const refused = await Promise.all(
      [{}, as('nobody'), as(submitter.token)].map(
        async (headers) => await fetch(`${url}/metrics`, { headers }),
      ),
    );
    expect(refused.map(({ status }) => status)).to.deep.equal([401, 401, 403]);
  });

  it('are not there for sandboxes', async () => {
    const harnessPort = await freePort();
    await start(undefined, harnessPort);
    const answer = (path: string) => fetch(`http://127.0.0.1:${harnessPort}${path}`);
    expect((await answer('/healthz')).status).to.equal(200);
    expect((await answer('/metrics')).status).to.equal(404);
  });
});
