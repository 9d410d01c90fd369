// Stands in front of a container engine's socket: kills the engine when it is asked for something, before or after it hears it.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../services/common/clock.ts';
import type { TestEngine } from './container-engine.ts';

export interface Moment {
  /** Of a request's first line. */
  readonly request: RegExp;
  /** Milliseconds after the engine has heard it; undefined: it never does. */
  readonly afterMs?: number;
}

export interface Tripwire extends AsyncDisposable {
  readonly socket: string;
  /** Ids of containers that were named in requests so far. */
  readonly containers: ReadonlySet<string>;
  /** Resolves when the engine has been killed at the first such request from now on. */
  killAt(moment: Moment): Promise<void>;
}

export async function openTripwire(engine: TestEngine): Promise<Tripwire> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-tripwire-'));
  const socket = join(folder, 'engine.sock');
  const containers = new Set<string>();
  let armed: (Moment & { readonly tripped: () => void }) | undefined;
  const server = createServer({ allowHalfOpen: true }, (from) => {
    const to = connect({ path: engine.socket, allowHalfOpen: true });
    joined(from, to);
    from.on('data', (bytes: Buffer) => {
      const request = bytes.toString('latin1').split('\r\n')[0] ?? '';
      const id = /^\w+ \/containers\/([0-9a-f]{64})/.exec(request)?.[1];
      if (id !== undefined) containers.add(id);
      const now = armed?.request.test(request) ? armed : undefined;
      if (now !== undefined) armed = undefined;
      if (now === undefined || now.afterMs !== undefined) to.write(bytes);
      if (now !== undefined) void sleep(now.afterMs ?? 0).then(now.tripped);
    });
  });
  server.listen(socket);
  await once(server, 'listening');
  return {
    socket,
    containers,
    async killAt(moment) {
      await new Promise<void>((tripped) => {
        armed = { ...moment, tripped };
      });
      await engine.kill();
    },
    async [Symbol.asyncDispose]() {
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What ends one way ends the other. */
function joined(from: Socket, to: Socket): void {
  to.on('data', (bytes) => from.write(bytes));
  from.on('end', () => to.end());
  to.on('end', () => from.end());
  for (const [one, other] of [
    [from, to],
    [to, from],
  ] as const) {
    one.on('error', () => {});
    one.on('close', () => other.destroy());
  }
}
