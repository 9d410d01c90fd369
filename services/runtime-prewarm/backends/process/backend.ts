// The process backend: commands of the host in a folder of their own. It isolates nothing and says so.

import { asPolarError, PolarError } from '../../../common/errors.ts';
import { DEFAULT_WORKDIR } from '../../../common/specs/catalogue.ts';
import type { Host } from '../../host/host.ts';
import type { Backend } from '../backend.ts';
import type { OpenedBackend } from '../looked-for.ts';
import { probe } from '../probe.ts';
import { ProcessBox } from './box.ts';

/** Probes by running a command. `proxyUrl`: the LLM proxy, which commands reach as everything else of the host. */
export async function openProcess(host: Host, proxyUrl: string): Promise<OpenedBackend> {
  const base = { name: 'process', isolates: false, async [Symbol.asyncDispose]() {} } as const;
  const backend: Backend = {
    ...base,
    images: () => [],
    fetches: false,
    gpus: 'by_command',
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
    await probe(backend, '', DEFAULT_WORKDIR);
    return { ...base, backend };
  } catch (error) {
    const { message } = asPolarError(error);
    const unavailable = new PolarError('BACKEND_UNAVAILABLE', `process cannot be used here: ${message}`);
    return { ...base, unavailable };
  }
}
