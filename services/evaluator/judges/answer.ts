// What a judge's answer has to be.
import { z } from 'zod';
import { SCORE_MAX } from '../domain/judge-prompt.ts';

/**
 * Scores by name, exactly those asked for, in the one JSON object of the answer; undefined where it is anything else. Chat
 * models put fences and words around it, and say what they think before.
 */
export function scoresIn(answer: string, names: readonly string[]): ReadonlyMap<string, number> | undefined {
  const score = z.number().min(-SCORE_MAX).max(SCORE_MAX);
  const scores = z.strictObject(Object.fromEntries(names.map((name) => [name, score])));
  const object = objectIn(answer);
  const parsed = z.strictObject({ scores }).safeParse(jsonOf(object));
  // Of two that have one name, JSON.parse takes the last.
  const isEachOnce = ['scores', ...names].every((name) => object.split(`"${name}"`).length === 2);
  return parsed.success && isEachOnce ? new Map(Object.entries(parsed.data.scores)) : undefined;
}

/** From the first brace to the last, so that two objects are none; nor is one of thoughts that have no end. */
function objectIn(answer: string): string {
  const said = answer.split('</think>').at(-1) ?? '';
  return said.includes('<think>') ? '' : said.slice(said.indexOf('{'), said.lastIndexOf('}') + 1);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
