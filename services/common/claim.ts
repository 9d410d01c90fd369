// One process of this machine has a name, until it ends, however that is.
// A claim is an abstract Unix socket: it is of the network namespace, and the kernel gives it back with the process.
import { once } from 'node:events';
import { realpath, stat } from 'node:fs/promises';
import { createServer, type ListenOptions, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { sha256 } from './ids.ts';

/** Undefined where another process has it, or this one already. Disposing gives it back at once. */
export async function claim(name: string): Promise<AsyncDisposable | undefined> {
  const server = await listenQuietly({ path: `\0polar-${name}` });
  if (typeof server === 'string') return undefined;
  return { [Symbol.asyncDispose]: () => closed(server) };
}

/**
 * A file that is to be written, which need not be there yet, wherever links lead to it from. What is no regular file, as a
 * device, is everybody's.
 */
export async function claimFile(file: string): Promise<AsyncDisposable | undefined> {
  const real = await realpath(file).catch(async () => join(await realpath(dirname(file)), basename(file)));
  const found = await stat(real).catch(() => undefined);
  if (found !== undefined && !found.isFile()) return { [Symbol.asyncDispose]: async () => {} };
  // Names of sockets are short.
  return await claim(`file-${sha256(real)}`);
}

/** An error's code where nobody can listen there. It keeps no process alive. */
export function listenQuietly(address: ListenOptions): Promise<Server | string> {
  return new Promise((resolve) => {
    const server = createServer().unref();
    server.once('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(code));
    server.listen(address, () => resolve(server));
  });
}

export async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}
