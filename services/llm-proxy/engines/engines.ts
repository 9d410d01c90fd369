// The engines of a node: which one a call is put to.
import type { NodeTopology } from '../../common/config/topology.ts';
import { Engine } from './engine.ts';
import { type CallOrder, type EngineCall, TextCall } from './engine-call.ts';

export class Engines implements Disposable {
  readonly #engine: Engine;

  constructor(node: Pick<NodeTopology, 'inference' | 'model_served'>) {
    this.#engine = new Engine(node);
  }

  [Symbol.dispose](): void {
    this.#engine[Symbol.dispose]();
  }

  get all(): readonly Engine[] {
    return [this.#engine];
  }

  /** The model that calls name: the node's `model_served`, else the engine's first one. */
  async model(signal: AbortSignal): Promise<string> {
    return await this.#engine.model(signal);
  }

  /** A try of the call at one engine. Throws ENGINE_UNAVAILABLE, the signal's reason. */
  async begin(order: CallOrder, signal: AbortSignal): Promise<EngineCall> {
    return new TextCall(this.#engine, await this.#engine.model(signal), order);
  }
}
