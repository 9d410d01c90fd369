// What a Harbor verifier writes: reward.json, a number or an object of numbers, or else reward.txt, a number.
import { jsonIn, numberOf, type Rewards, type WrittenReward, writtenReward } from './written-reward.ts';

/** Undefined: a file is not there. What reward.json has counts, be it wrong. Else why there is no reward. */
export function harborReward(
  json: Uint8Array | undefined,
  text: Uint8Array | undefined,
): WrittenReward | string {
  if (json !== undefined) return writtenReward('reward.json', json, ofJson);
  if (text !== undefined) return writtenReward('reward.txt', text, ofText);
  return 'wrote neither reward.json nor reward.txt';
}

const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

const ofText = (text: string): Rewards | string =>
  NUMBER.test(text) ? { reward: Number(text) } : 'holds no number';

function ofJson(text: string): Rewards | string {
  const value = jsonIn(text);
  if (value === undefined) return 'is no JSON';
  const one = numberOf(value);
  if (one !== undefined) return { reward: one };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return 'is neither a number nor an object of numbers';
  }
  const entries = Object.entries(value).map(([name, each]) => [name.toWellFormed(), numberOf(each)] as const);
  if (entries.length === 0) return 'names no reward';
  const wrong = entries.find(([, each]) => each === undefined);
  return wrong === undefined
    ? (Object.fromEntries(entries) as Rewards)
    : `has no number as ${wrong[0].slice(0, 100)}`;
}
