// The GPUs of one sandbox: claimed before it is made, or by its first command that is no preparation's.
import type { Backend } from '../backends/backend.ts';
import type { GpuGrant, GpuHolder } from '../domain/gpus.ts';
import type { GpuClaim, NodeGpus } from './gpus.ts';

export class RuntimeGpus {
  readonly #gpus: NodeGpus;
  readonly #holder: GpuHolder;
  readonly #count: number;
  readonly #when: Backend['gpus'];
  #claim: GpuClaim | undefined;

  constructor(gpus: NodeGpus, holder: GpuHolder, count: number, when: Backend['gpus']) {
    this.#gpus = gpus;
    this.#holder = holder;
    this.#count = count;
    this.#when = when;
  }

  /** One call at a time: before it is made, or by a command of it. Throws as NodeGpus.claim. */
  async granted(signal: AbortSignal): Promise<GpuGrant> {
    this.#claim ??= await this.#gpus.claim(this.#holder, this.#count, signal);
    return this.#claim;
  }

  /** Its commands have ended, and there will be no more. */
  idle(): void {
    if (this.#when === 'by_command') this.release();
  }

  release(): void {
    this.#claim?.release();
  }

  leave(): void {
    this.#claim?.leave();
  }
}
