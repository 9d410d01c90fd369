// `polar export` that is stopped: what it was writing is not left there.
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { type RunningServer, startServer } from '../../services/common/server.ts';
import { startPolar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';

describe('polar export that is stopped', () => {
  let folder: string;
  let server: RunningServer;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-export-'));
    server = await startServer({
      host: '127.0.0.1',
      port: 0,
      services: [TrajectoryService.typeName],
      routes: (router) =>
        router.service(TrajectoryService, {
          async *exportSession(_, { signal }) {
            yield { line: '{"call_id": "c1"}' };
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
          },
        }),
    });
  });
  after(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });

  it('leaves nothing half written, and ends as commands do', async () => {
    const out = join(folder, 'calls.jsonl');
    const url = `http://127.0.0.1:${server.port}`;
    const args = ['export', 's-0', '--calls', '-o', out, '--trajectory-url', url];
    const { child, ended } = startPolar(args);
    const part = `${out}.part`;
    await eventually('it writes', () => existsSync(part) && statSync(part).size > 0);
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    expect([code, stderr]).to.deep.equal([130, 'polar: CANCELLED: ended by SIGINT\n']);
    expect(readdirSync(folder)).to.deep.equal([]);
  });
});
