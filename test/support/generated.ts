// Conversations made by chance from a seed: the same for a seed at each run.
import type { WireReply, WireToolCall } from './wire-engine.ts';

/** Numbers from 0 to below 1. */
export function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // Mulberry32.
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const pick = <T>(random: () => number, from: readonly T[]): T =>
  from[Math.floor(random() * from.length)] as T;

const WORDS = [
  'So',
  ' naïve',
  '\n\n',
  ' 日本語',
  ' 👩‍👩‍👧',
  '"quoted"',
  ' \\ ',
  ' <tag>',
  '\t',
  ' a\u2028b',
  ' end',
  '{',
  '}',
];
const PATHS = ['/tmp/a b.txt', 'src/"x".ts', 'ü/日本.md', 'a\\b'];

export const words = (random: () => number, most: number): string =>
  Array.from({ length: Math.floor(random() * most) }, () => pick(random, WORDS)).join('');

/** Arguments with white space, escapes and letters as a model may write them. */
function someArguments(random: () => number): string {
  const path = pick(random, PATHS);
  const plain = JSON.stringify({ path, n: Math.floor(random() * 100), deep: { on: random() < 0.5 } });
  return pick(random, [plain, plain.replaceAll(':', ' :  '), plain.replace('a', '\\u0061'), '{}']);
}

/** A small PNG, valid. */
export const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

export interface GeneratedTools {
  /** Names of functions that take `path`. */
  readonly functions: readonly string[];
  /** Names of tools that take free text. */
  readonly custom?: readonly string[];
}

function someCall(
  random: () => number,
  id: string,
  { functions, custom = [] }: GeneratedTools,
): WireToolCall {
  const name = pick(random, [...functions, ...custom]);
  const args = custom.includes(name) ? JSON.stringify({ input: words(random, 9) }) : someArguments(random);
  return { id, name, arguments: args };
}

/** What a model says in one turn: text, reasoning, calls in parallel, nothing at all, or cut short. */
export function someReply(random: () => number, turn: number, tools: GeneratedTools): WireReply {
  const reply: WireReply = {};
  if (random() < 0.5) reply.reasoning = `r${words(random, 8)}`;
  if (random() < 0.7) reply.content = words(random, 12);
  if (random() < 0.5) {
    const calls = 1 + Math.floor(random() * 3);
    reply.toolCalls = Array.from({ length: calls }, (_, i) => someCall(random, `call_${turn}_${i}`, tools));
  }
  if (random() < 0.15) reply.finish = 'length';
  return reply;
}
