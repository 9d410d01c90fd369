// Ports claimed before anything listens there, so that two meshes that start in the same moment choose different ones.
// A claim is an abstract Unix socket of the port's name: it is of the network namespace, as the port is, and the kernel
// gives it back when the process ends, however that ends.
import { once } from 'node:events';
import { createServer, type ListenOptions, type Server } from 'node:net';

/** Claim a port for as long as this process lives. False where another process has claimed it, or listens there. */
export async function claimPort(port: number, host: string): Promise<boolean> {
  const claim = await listenQuietly({ path: `\0polar-port-${port}` });
  if (claim === undefined) return false;
  const trial = await listenQuietly({ port, host });
  if (trial === undefined) claim.close();
  else await closed(trial);
  return trial !== undefined;
}

/** Undefined where the address is taken. It keeps no process alive. */
function listenQuietly(address: ListenOptions): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer().unref();
    server.once('error', () => resolve(undefined));
    server.listen(address, () => resolve(server));
  });
}

async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}
