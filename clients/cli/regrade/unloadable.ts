// Nodes that cannot load the evaluator, which is a file of each: no session has to be asked for to know it again.
import type { PolarError } from '../../../services/common/errors.ts';
import type { NotRegraded } from './regrade.ts';

const REASON = 'EVALUATOR_PLUGIN_INVALID';

export class Unloadable {
  readonly #asked = new Set<string>();
  readonly #said = new Map<string, PolarError>();

  /** Before a node is asked. Throws what it has said. */
  check(url: string): void {
    const said = this.#said.get(url);
    if (said !== undefined) throw said;
    this.#asked.add(url);
  }

  failed(url: string, error: PolarError): void {
    if (error.reason === REASON) this.#said.set(url, error);
  }

  /** Whether others may have to say whether it is the evaluator's fault or the node's. */
  isOf(row: object): row is NotRegraded {
    return 'reason' in row && row.reason === REASON;
  }

  /** Throws what one has said where all have. */
  throwIfAll(): void {
    const [first] = this.#said.values();
    if (first !== undefined && this.#said.size === this.#asked.size) throw first;
  }
}
