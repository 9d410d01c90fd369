// What a judge's answer has to be.
import { z } from 'zod';
import { SCORE_MAX } from '../domain/judge-prompt.ts';

/** Scores by name, exactly those asked for; undefined where the answer is anything else. */
export function scoresIn(answer: string, names: readonly string[]): ReadonlyMap<string, number> | undefined {
  const score = z.number().min(-SCORE_MAX).max(SCORE_MAX);
  const scores = z.strictObject(Object.fromEntries(names.map((name) => [name, score])));
  const parsed = z.strictObject({ scores }).safeParse(jsonOf(unfenced(answer)));
  return parsed.success ? new Map(Object.entries(parsed.data.scores)) : undefined;
}

/** Without the fence that chat models put around JSON. */
const unfenced = (text: string): string => /^```(?:json)?\n(.*)\n```$/s.exec(text.trim())?.[1] ?? text;

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
