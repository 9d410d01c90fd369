// Stands between a client and the socket of a container engine, and keeps what the client says.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface OverheardSocket extends AsyncDisposable {
  readonly socket: string;
  readonly said: string;
}

export async function overhear(socket: string): Promise<OverheardSocket> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-overheard-'));
  const at = join(folder, 'engine.sock');
  let said = '';
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const engine = connect({ path: socket, allowHalfOpen: true });
    client.on('data', (bytes) => {
      said += bytes.toString('latin1');
    });
    client.on('error', () => engine.destroy()).pipe(engine);
    engine.on('error', () => client.destroy()).pipe(client);
    client.on('close', () => engine.destroy());
    engine.on('close', () => client.destroy());
  });
  await once(server.listen(at), 'listening');
  return {
    socket: at,
    get said() {
      return said;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
