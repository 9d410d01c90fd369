// The reward in a file with a JSON object: the number under one of its keys.
import { jsonIn, numberOf, type WrittenReward, writtenReward } from './written-reward.ts';

/** Undefined: the file is not there. Else why there is no reward. */
export function resultReward(
  path: string,
  bytes: Uint8Array | undefined,
  key: string,
): WrittenReward | string {
  if (bytes === undefined) return `wrote no ${path}`;
  return writtenReward(path, bytes, (text) => {
    const value = jsonIn(text);
    if (value === undefined) return 'is no JSON';
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is no JSON object';
    const reward = Object.hasOwn(value, key) ? numberOf(value[key]) : undefined;
    return reward === undefined ? `has no number as ${key}` : { [key]: reward };
  });
}
