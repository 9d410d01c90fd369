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

  /** One call at a time: before it is made, or by a command of it. Throws as NodeGpus.claim. */
  async granted(signal: AbortSignal): Promise<GpuGrant> {
    this.#claim ??= await this.#gpus.claim(this.#holder, this.#count, signal);
    return this.#claim;
  }

  release(): void {
    this.#claim?.release();
  }

  leave(): void {
    this.#claim?.leave();
  }
}
