// A limit of the reply above all that the model reads. Some engines end the reply where their window does; others refuse the
// request, and with it each one of a harness that always asks for as much, as Claude Code does for 32,000 tokens.
import type { JsonObject } from './json.ts';
import { overflowSizes } from './overflow.ts';

const LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

/** In the words of vLLM 0.32, and of OpenAI and SGLang. */
const REFUSED =
  /\bmax_(?:completion_)?tokens=\d+ cannot be greater than max_model_len=(\d+)|is too large: \d+\.\s*This model supports at most (\d+) completion tokens/;

/** The request with limits that the engine takes by its answer; undefined: that is not what it refuses. */
export function withinWindow(sent: JsonObject, answer: string): JsonObject | undefined {
  const most = mostIn(answer);
  const above = most === undefined ? [] : LIMITS.filter((name) => Number(sent[name] ?? 0) > most);
  if (most === undefined || above.length === 0) return undefined;
  return { ...sent, ...Object.fromEntries(above.map((name) => [name, most])) };
}

function mostIn(answer: string): number | undefined {
  const named = REFUSED.exec(answer)?.slice(1).find(Boolean);
  if (named !== undefined) return Number(named);
  const { prompt, reply, most } = overflowSizes(answer);
  if (prompt === undefined || reply === undefined || most === undefined) return undefined;
  // Where the limit alone would fit, the prompt may be what is too long: that is for the harness to know.
  return reply >= most && prompt < most ? most - prompt : undefined;
}
