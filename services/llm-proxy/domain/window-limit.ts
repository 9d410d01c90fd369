// A limit of the reply above all that the model reads. Most engines end the reply where their window does; vLLM refuses the
// request, and with it each one of a harness that always asks for as much, as Claude Code does for 32,000 tokens.
import type { JsonObject } from './json.ts';

const LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

/** In the words of vLLM 0.32. */
const REFUSED = /\bmax_(?:completion_)?tokens=\d+ cannot be greater than max_model_len=(\d+)/;

/** The request with its limits at the window that the answer names; undefined: it names none, or they are not above it. */
export function withinWindow(sent: JsonObject, answer: string): JsonObject | undefined {
  const windowTokens = Number(REFUSED.exec(answer)?.[1] ?? Number.POSITIVE_INFINITY);
  const above = LIMITS.filter((name) => Number(sent[name] ?? 0) > windowTokens);
  if (above.length === 0) return undefined;
  return { ...sent, ...Object.fromEntries(above.map((name) => [name, windowTokens])) };
}
