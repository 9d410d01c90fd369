// The GPUs of one sandbox: claimed before it is made, or by its first command that is no preparation's.
import type { GpuGrant, GpuHolder } from '../domain/gpus.ts';
import type { GpuClaim, NodeGpus } from './gpus.ts';

export class RuntimeGpus {
  readonly #gpus: NodeGpus;
  readonly #holder: GpuHolder;
  readonly #count: number;
  #claim: GpuClaim | undefined;

  constructor(gpus: NodeGpus, holder: GpuHolder, count: number) {
    this.#gpus = gpus;
    this.#holder = holder;
    this.#count = count;
  }

  /** For a sandbox that has them from its creation on. Throws as NodeGpus.claim. */
  async forSandbox(signal: AbortSignal): Promise<GpuGrant> {
    this.#claim ??= await this.#gpus.claim(this.#holder, this.#count, signal);
    return this.#claim;
  }

  /** For one of its commands, of which there is one at a time. Throws as NodeGpus.claim. */
  async forCommand(signal: AbortSignal): Promise<GpuGrant> {
    return await this.forSandbox(signal);
  }

  release(): void {
    this.#claim?.release();
  }

  leave(): void {
    this.#claim?.leave();
  }
}
