// An engine as one of its pool: what is counted of it there.
import type { RoutedEngine } from '../domain/routing.ts';
import { Engine } from './engine.ts';
import type { EngineSpec } from './spec.ts';

export class Member implements RoutedEngine, Disposable {
  /** As the topology or the router tells it. */
  readonly url: string;
  readonly engine: Engine;
  readonly loadMax: number;
  load = 0;
  sessions = 0;
  draining = false;

  constructor(url: string, spec: EngineSpec) {
    this.url = url;
    this.engine = new Engine(url, spec);
    this.loadMax = spec.callsMax;
  }

  [Symbol.dispose](): void {
    this.engine[Symbol.dispose]();
  }

  get up(): boolean {
    return this.engine.health.up;
  }
}
