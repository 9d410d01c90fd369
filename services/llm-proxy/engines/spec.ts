// What the topology says of the engines of one model.
import type { EngineKind } from '../domain/engine-features.ts';
import type { ExpertShape } from '../domain/routed-experts.ts';
import type { ApiKey } from './api-key.ts';

export interface EngineSpec {
  readonly kind: EngineKind;
  /** As calls name it; empty: the first that the engine has. */
  readonly model: string;
  readonly key: ApiKey | undefined;
  /** Calls of this proxy at one engine. */
  readonly callsMax: number;
  /** Of its model; set where it is to tell its routed experts. */
  readonly experts?: ExpertShape | undefined;
}

export interface PoolSpec extends EngineSpec {
  /** Name by which harnesses ask for it; empty: the policy. */
  readonly alias: string;
  readonly urls: readonly string[];
  readonly scheduler: 'none' | 'sglang_router' | 'thunderagent';
  /** Streams are made from whole replies. */
  readonly madeStreams: boolean;
  /** Longest wait for a place at an engine. */
  readonly queueMs: number;
  /** Sessions that may use it at once; null: any number. */
  readonly sessionsMax: number | null;
}
