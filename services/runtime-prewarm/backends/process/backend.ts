// The process backend: commands of the host in a folder of their own. It isolates nothing and says so.

import { asPolarError, PolarError } from '../../../common/errors.ts';
import { newId } from '../../../common/ids.ts';
import { RPC_TIMEOUT_MS } from '../../../common/limits.ts';
import type { Host } from '../../host/host.ts';
import { Limit } from '../../host/limit.ts';
import type { Backend, BackendState } from '../backend.ts';
import { ProcessBox } from './box.ts';

/** Probes by running a command. `proxyUrl`: the LLM proxy, which commands reach as everything else of the host. */
export async function openProcess(host: Host, proxyUrl: string): Promise<BackendState> {
  const base = { name: 'process', isolates: false } as const;
  const backend: Backend = {
    ...base,
    images: () => [],
    async create(spec) {
      if (spec.image !== '') {
        throw new PolarError(
          'IMAGE_NOT_FOUND',
          `the process backend has no images: leave runtime.image ${JSON.stringify(spec.image)} out, or use bubblewrap`,
        );
      }
      return await ProcessBox.create(host, spec, proxyUrl);
    },
  };
  try {
    await probe(backend);
    return { ...base, backend };
  } catch (error) {
    const { message } = asPolarError(error);
    const unavailable = new PolarError('BACKEND_UNAVAILABLE', `process cannot be used here: ${message}`);
    return { ...base, unavailable };
  }
}

async function probe(backend: Backend): Promise<void> {
  const box = await backend.create({ id: newId('probe'), image: '', limits: { memoryBytes: 0, cpus: 0 } });
  try {
    const said: Uint8Array[] = [];
    const { exitCode } = await box.exec(
      {
        ...{ argv: ['sh', '-c', 'exit 0'], cwd: '/polar/session/workspace', env: {}, mounts: [] },
        ...{ stdin: new Uint8Array(), limit: new Limit(RPC_TIMEOUT_MS), proxyAccess: false },
      },
      (_stream, bytes) => said.push(bytes),
      AbortSignal.timeout(RPC_TIMEOUT_MS),
    );
    if (exitCode === 0) return;
    throw new PolarError('SANDBOX_FAILED', Buffer.concat(said).toString().trim() || `exit ${exitCode}`);
  } finally {
    await box.remove();
  }
}
