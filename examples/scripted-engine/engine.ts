// What one engine holds.
import type { Dialect } from './dialects/dialect.ts';
import { FaultPlan } from './faults.ts';
import { Prompts } from './prompt/prompt.ts';
import type { Script } from './script/schema.ts';
import type { Switches } from './switches.ts';
import type { Model } from './tokenizer/tokenizer.ts';

export interface EngineOptions {
  readonly dialect: Dialect;
  /** The one that fits a conversation's latest message is played. */
  readonly scripts: readonly Script[];
  readonly switches: Switches;
  /** Name under /v1/models. */
  readonly modelName: string;
}

export interface Engine {
  readonly options: EngineOptions;
  readonly model: Model;
  readonly prompts: Prompts;
  readonly faults: FaultPlan;
  /** Unix seconds. */
  readonly created: number;
  /** Changes while calls are being answered. */
  weightVersion: string;
  readonly stats: { calls: number; running: number; aborted: number; failed: number; tokens: number };
}

export function createEngine(options: EngineOptions, model: Model): Engine {
  return {
    options,
    model,
    prompts: new Prompts(model),
    faults: new FaultPlan(),
    created: Math.floor(Date.now() / 1000),
    weightVersion: 'default',
    stats: { calls: 0, running: 0, aborted: 0, failed: 0, tokens: 0 },
  };
}
