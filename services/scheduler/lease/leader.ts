// What a scheduler does while it leads: the state in memory, and all that answers, consumes and dispatches on it.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { PolarError } from '../../common/errors.ts';
import { consumeFacts } from '../consumers/facts.ts';
import { answerHeartbeats } from '../consumers/heartbeats.ts';
import { hearPressure } from '../consumers/pressure.ts';
import {
  type ContextOptions,
  type ContextOverrides,
  createContext,
  type SchedulerContext,
} from '../context.ts';
import { resendWork, restore } from '../dispatch/recovery.ts';
import { rolloutService } from '../routes/index.ts';
import { sweepBlobs } from '../sweep/blob-sweep.ts';

export class Leader implements AsyncDisposable {
  readonly handlers: ServiceImpl<typeof RolloutService>;
  /** Rejects when another scheduler leads; never resolves. */
  readonly failed: Promise<never>;
  readonly #context: SchedulerContext;
  readonly #running: Promise<unknown>;

  private constructor(context: SchedulerContext) {
    this.#context = context;
    this.handlers = rolloutService(context);
    this.failed = context.failed;
    restore(context);
    answerHeartbeats(context);
    hearPressure(context);
    this.#running = Promise.allSettled([
      consumeFacts(context),
      context.dispatcher.run(context.signal),
      context.stateLog.run(),
      resendWork(context),
      sweepBlobs(context),
    ]);
  }

  /** Takes over the state log, then answers and consumes. The lease must be held. */
  static async start(options: ContextOptions, overrides: ContextOverrides): Promise<Leader> {
    return new Leader(await createContext(options, overrides));
  }

  /** Another scheduler leads: nothing is decided or answered here any more. */
  close(error: PolarError): void {
    this.#context.stateLog.journal.close(error);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#context.stop();
    await this.#running;
    await this.#context.effects.idle();
    await this.#context.archiver.idle();
    await this.#context.callbacks.idle();
  }
}
