// Ports claimed before anything listens there, so that two meshes that start in the same moment choose different ones.
// A claim is an abstract Unix socket of the port's name: it is of the network namespace, as the port is, and the kernel
// gives it back when the process ends, however that ends.
import { once } from 'node:events';
import { createServer, type ListenOptions, type Server } from 'node:net';

/** Claim a port for as long as this process lives. False where another process has claimed it, or listens there. */
export const claimPort = async (port: number, host: string): Promise<boolean> =>
  (await portFault(port, host)) === undefined;

/** The same; answers with why it cannot be had. */
export async function portFault(port: number, host: string): Promise<string | undefined> {
  const claim = await listenQuietly({ path: `\0polar-port-${port}` });
  if (typeof claim === 'string') return TAKEN;
  const trial = await listenQuietly({ port, host });
  if (typeof trial === 'string') claim.close();
  else await closed(trial);
  return typeof trial === 'string' ? (WHY[trial] ?? TAKEN) : undefined;
}

const TAKEN = 'is taken';
const WHY: Readonly<Record<string, string>> = {
  EACCES: 'is not for this user',
  EADDRNOTAVAIL: 'cannot be had: this machine has no such address',
  ENOTFOUND: 'cannot be had: nobody knows that name',
};

/** An error's code where nobody can listen there. It keeps no process alive. */
function listenQuietly(address: ListenOptions): Promise<Server | string> {
  return new Promise((resolve) => {
    const server = createServer().unref();
    server.once('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(code));
    server.listen(address, () => resolve(server));
  });
}

async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}
