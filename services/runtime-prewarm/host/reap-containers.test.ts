// The guardian's last act, with engines that are away, silent, and there.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';

const SCRIPT = join(import.meta.dirname, 'reap_containers.py');
const BUDGET_S = '5';
const listed = (Id: string, name: string): object => ({
  ...{ Id, Names: [name], Labels: { 'polar.runtime': `rt-${Id}` } },
});

describe('containers of a manager that has ended', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-reap-'));
  const servers: Server[] = [];
  const engineOf = async (name: string, answer: RequestListener): Promise<string> => {
    const server = createServer(answer);
    servers.push(server);
    await once(server.listen(join(folder, name)), 'listening');
    return join(folder, name);
  };
  after(() => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    rmSync(folder, { recursive: true });
  });

  it('are deleted before its layers, in one time for all engines, whichever of them answers', async () => {
    const deleted: (string | undefined)[] = [];
    /** `b` is still at work when it is deleted first, and has no name then; `late` was being made. */
    const [a, b, late] = ['a', 'b', 'late'].map((Id) => listed(Id, `/rt-${Id}`));
    const dying = { ...b, Names: null };
    /** Somebody else's, made of an image that was made of a sandbox. */
    const kept = listed('kept', '/kept');
    const looks = [[a, b, kept], [dying, kept], [kept], [late, kept]];
    const lists: Readonly<Record<string, object>> = {
      '/images/json': [
        { Id: 'layer', Labels: { 'polar.layer': 'key' } },
        { Id: 'other', Labels: {} },
        { Id: 'kept-image', Labels: { 'polar.layer': '' } },
      ],
    };
    let silent = 0;
    const sockets = [
      join(folder, 'away'),
      await engineOf('silent', () => silent++),
      await engineOf('silent-too', () => silent++),
      await engineOf('there', ({ method, url }, response) => {
        const path = url?.split('?')[0] ?? '';
        if (method === 'DELETE') deleted.push(path);
        response.end(
          JSON.stringify(path === '/containers/json' ? (looks.shift() ?? [kept]) : (lists[path] ?? {})),
        );
      }),
    ];
    await promisify(execFile)('python3', ['-IS', SCRIPT, JSON.stringify(sockets), 'polar-x', BUDGET_S]);
    expect(deleted).to.eql(['a', 'b', 'b', 'late'].map((id) => `/containers/${id}`).concat('/images/layer'));
    expect(silent).to.equal(2);
  });
});
