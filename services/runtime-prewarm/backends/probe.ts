// Whether a backend works here: it runs a command, and what that answers is what tasks would get.
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { RPC_TIMEOUT_MS } from '../../common/limits.ts';
import { Limit } from '../host/limit.ts';
import type { Backend } from './backend.ts';

/** Throws what the sandbox or the command says. */
export async function probe(backend: Backend, image: string, cwd: string): Promise<void> {
  const signal = AbortSignal.timeout(RPC_TIMEOUT_MS);
  const limits = { memoryBytes: 0, cpus: 0 };
  const spec = { id: newId('probe'), session: '', image, limits, gpus: 0, storageMb: 0 };
  const box = await backend.create(spec, signal);
  try {
    const said: Uint8Array[] = [];
    const { exitCode } = await box.exec(
      {
        ...{ argv: ['sh', '-c', 'exit 0'], cwd, env: {}, stdin: new Uint8Array(), mounts: [] },
        ...{ limit: new Limit(RPC_TIMEOUT_MS), proxyAs: '' },
      },
      (_stream, bytes) => said.push(bytes),
      signal,
    );
    if (exitCode === 0) return;
    throw new PolarError('SANDBOX_FAILED', Buffer.concat(said).toString().trim() || `exit ${exitCode}`);
  } finally {
    await box.remove();
  }
}
