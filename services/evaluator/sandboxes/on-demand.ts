// The two sandboxes of an evaluation, each opened when it is first asked for.
import type { EvaluatorContext } from '../context.ts';
import type { Evaluation } from '../evaluators/evaluator.ts';
import { liveSandbox, type OpenSandbox, withFreshSandbox } from './sandbox.ts';

export class OnDemand implements AsyncDisposable {
  readonly #ctx: EvaluatorContext;
  readonly #evaluation: Evaluation;
  readonly #signal: AbortSignal;
  readonly #over = Promise.withResolvers<void>();
  #live: Promise<OpenSandbox> | undefined;
  #fresh: Promise<OpenSandbox> | undefined;
  #freshGone: Promise<void> | undefined;

  /** The signal ends what goes on in them. */
  constructor(ctx: EvaluatorContext, evaluation: Evaluation, signal: AbortSignal) {
    this.#ctx = ctx;
    this.#evaluation = evaluation;
    this.#signal = signal;
  }

  /** Throws what opening one throws. */
  open(which: 'live' | 'fresh'): Promise<OpenSandbox> {
    if (which === 'live') {
      this.#live ??= liveSandbox(this.#ctx, this.#evaluation, this.#signal);
      return this.#live;
    }
    this.#fresh ??= this.#makeFresh();
    return this.#fresh;
  }

  /** The fresh one is removed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.resolve();
    await this.#freshGone;
  }

  #makeFresh(): Promise<OpenSandbox> {
    const { promise, resolve, reject } = Promise.withResolvers<OpenSandbox>();
    this.#freshGone = withFreshSandbox(this.#ctx, this.#evaluation, this.#signal, async (sandbox) => {
      resolve(sandbox);
      await this.#over.promise;
    }).catch(reject);
    return promise;
  }
}
