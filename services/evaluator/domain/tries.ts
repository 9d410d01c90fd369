// Tries of one evaluation share its budget: the scheduler's clock of the stage does not begin anew with each.
import type { BlobRef } from '../../../gen/ts/polar/common/v1/blob_pb.js';
import type { PolarError } from '../../common/errors.ts';

export class Tries<Outcome> {
  /** What one has found that later ones need not find again: tests may take as long as all the rest. */
  outcome: Outcome | undefined;
  /** What was read of the session's changes in the last one that came so far. */
  changes: BlobRef | undefined;
  #spentMs = 0;
  #failure: PolarError | undefined;

  /** What is left of the budget, 0 at least. */
  leftMs(budgetMs: number): number {
    return Math.max(0, budgetMs - this.#spentMs);
  }

  /** One has failed. Returns the failure to tell: of a time that was too short, what took it before. */
  failed(failure: PolarError, tookMs: number): PolarError {
    this.#spentMs += tookMs;
    if (failure.reason === 'EVALUATION_TIMEOUT') return this.#failure ?? failure;
    this.#failure = failure;
    return failure;
  }
}
