// The engines of a node: the policy's, and those of frozen model pools.
import { PolarError } from '../../common/errors.ts';
import type { CallOrder } from './engine-call.ts';
import type { PlacedCall } from './placed-call.ts';
import { Pool, sessionOf } from './pool.ts';
import type { PoolSpec } from './spec.ts';

export class Engines implements Disposable {
  readonly #policy: Pool;
  /** By alias. */
  readonly #pools: ReadonlyMap<string, Pool>;

  /** The policy's and all others. */
  constructor(specs: readonly PoolSpec[], nodeId: string) {
    const pools = specs.map((spec): [string, Pool] => [spec.alias, new Pool(spec, nodeId)]);
    this.#pools = new Map(pools);
    const policy = this.#pools.get('');
    if (policy === undefined) throw new TypeError('no engines for the policy');
    this.#policy = policy;
  }

  [Symbol.dispose](): void {
    for (const pool of this.#pools.values()) pool[Symbol.dispose]();
  }

  /** The policy's is ''. Throws NOT_FOUND. */
  pool(alias: string): Pool {
    const pool = this.#pools.get(alias);
    if (pool === undefined) throw new PolarError('NOT_FOUND', `no model pool ${alias}`);
    return pool;
  }

  /** The policy's first. */
  get pools(): readonly Pool[] {
    return [...this.#pools.values()];
  }

  /** Whether harnesses may ask for the model by this name, if their task allows it. */
  has(alias: string): boolean {
    return alias !== '' && this.#pools.has(alias);
  }

  /** The policy's model as calls name it: the node's `model_served`, else the engine's first one. */
  async model(signal: AbortSignal): Promise<string> {
    return await this.#policy.model(signal);
  }

  /**
   * A try of the call at one engine; not at one that has failed the same order, if there is another. To be run at once.
   * Throws ENGINE_UNAVAILABLE, ENGINE_BUSY, POOL_SESSIONS_LIMIT, NOT_FOUND, the signal's reason.
   */
  begin(order: CallOrder, signal: AbortSignal): Promise<PlacedCall> {
    return this.pool(order.pool).begin(order, signal);
  }

  /** Calls of the attempt may have been made before this process was: schedulers are to be told its end. */
  mayKnow(key: { readonly sessionId: string; readonly attempt: number }): void {
    for (const pool of this.pools) pool.mayKnow(sessionOf(key));
  }

  /** No call of the attempt will follow: leases end, schedulers are told. Throws ENGINE_UNAVAILABLE where one cannot be. */
  async endSession(key: { readonly sessionId: string; readonly attempt: number }): Promise<void> {
    await Promise.all(this.pools.map((pool) => pool.end(sessionOf(key))));
  }

  /** Take the engine at this address out of use in all pools, or back in; its calls in flight. Throws NOT_FOUND. */
  drain(url: string, draining: boolean): number {
    const found = this.pools.flatMap((pool) => pool.drain(url, draining));
    if (found.length > 0) return found.reduce((sum, { load }) => sum + load, 0);
    throw new PolarError('NOT_FOUND', `no engine at ${url}; ListEngines tells those there are`);
  }
}
