// Generation in time: token after token, as fast as the switches say, until the caller leaves.
import { setTimeout as delay } from 'node:timers/promises';
import type { PlannedChoice } from './choice.ts';
import type { VersionSpan } from './dialects/dialect.ts';
import type { Engine } from './engine.ts';
import type { ChatPlan } from './plan.ts';

/** Tokens `from` to `to` of a choice are there. */
export interface Progress {
  readonly choice: PlannedChoice;
  readonly from: number;
  readonly to: number;
}

/**
 * All choices in step, `tokens_per_chunk` tokens at a time; a silence at `stallAt`. Rejects when the signal aborts.
 */
export async function* pace(
  engine: Engine,
  plan: ChatPlan,
  stallAt: number,
  signal: AbortSignal,
): AsyncGenerator<Progress> {
  const { switches, choices } = plan;
  await wait(switches.first_token_ms, signal);
  let stalled = false;
  const longest = Math.max(...choices.map(({ generation }) => generation.steps.length));
  for (let from = 0; from < longest; from += switches.tokens_per_chunk) {
    if (!stalled && from >= stallAt) {
      stalled = true;
      await wait(switches.stall_ms, signal);
    }
    await wait(switches.token_ms * Math.min(switches.tokens_per_chunk, longest - from), signal);
    for (const choice of choices) {
      const to = Math.min(from + switches.tokens_per_chunk, choice.generation.steps.length);
      if (to <= from) continue;
      recordVersion(choice.versions, engine.weightVersion, from, to);
      engine.stats.tokens += to - from;
      yield { choice, from, to };
    }
  }
}

export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms > 0) await delay(ms, undefined, { signal });
}

function recordVersion(spans: VersionSpan[], version: string, start: number, end: number): void {
  const last = spans.at(-1);
  if (last?.version === version) last.end = end;
  else spans.push({ version, start, end });
}
