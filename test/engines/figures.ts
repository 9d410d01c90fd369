// What a run has found, by engine: what docs/engines.md shows.

import type { Mode } from './site.ts';

export interface Figures {
  passed: number;
  failed: number;
  startSeconds: number;
  /** Calls whose ids were compared with the engine's own, and were the same. */
  callsCompared: number;
  /** Sampled ids whose logprobs were scored again. */
  idsRescored: number;
  /** Largest difference between a recorded logprob and its re-scoring. */
  logprobError: number;
  /** From the harness's leaving to no request at the engine. */
  abortMs: number;
  /** By mode: turns of a session after the first, and those whose prompt does not begin with what was served before. */
  drift: Partial<Record<Mode, { turns: number; drifted: number }>>;
  /** By mode: a session as `polar audit --rescore` counts and scores it. */
  audits: Partial<Record<Mode, AuditFigures>>;
  /** Set: it did not run. */
  problem?: string;
}

export interface AuditFigures {
  readonly sampled: number;
  readonly trained: number;
  readonly engine_usage: number;
  /** Ids that were scored again, and the distribution of the differences of their logprobs. */
  readonly ids: number;
  readonly mean: number;
  readonly p99: number;
  readonly max: number;
}

const byEngine = new Map<string, Figures>();

export function figuresOf(title: string): Figures {
  let figures = byEngine.get(title);
  if (figures === undefined) {
    const none = { passed: 0, failed: 0, startSeconds: 0, callsCompared: 0, idsRescored: 0 };
    figures = { ...none, logprobError: 0, abortMs: 0, drift: {}, audits: {} };
    byEngine.set(title, figures);
  }
  return figures;
}
