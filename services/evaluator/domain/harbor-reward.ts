// What a Harbor verifier writes: reward.json, a number or an object of numbers, or else reward.txt, a number.
import type { JsonValue } from '@bufbuild/protobuf';

/** Of a file with rewards; above, there is none in it. */
export const REWARD_FILE_BYTES_MAX = 64 * 1024;
/** Largest reward, above or below 0. */
const REWARD_MAX = 1_000_000;

export interface HarborReward {
  readonly reward: number;
  /** By name, as they were written. */
  readonly rewards: Readonly<Record<string, number>>;
}

export interface RewardFiles {
  /** Undefined: it is not there. */
  readonly json: Uint8Array | undefined;
  readonly text: Uint8Array | undefined;
}

/** The reward, or why there is none. What reward.json has counts, be it wrong. */
export function harborReward({ json, text }: RewardFiles): HarborReward | string {
  const [name, bytes, read] =
    json === undefined ? ['reward.txt', text, ofText] : ['reward.json', json, ofJson];
  if (bytes === undefined) return 'wrote neither reward.json nor reward.txt';
  if (bytes.byteLength > REWARD_FILE_BYTES_MAX) {
    return `wrote a ${name} of ${bytes.byteLength} bytes, above ${REWARD_FILE_BYTES_MAX}`;
  }
  const rewards = read(Buffer.from(bytes).toString('utf8').trim());
  if (typeof rewards === 'string') return `wrote a ${name} that ${rewards}`;
  const values = Object.values(rewards);
  const wrong = Object.entries(rewards).find(([, value]) => !(Math.abs(value) <= REWARD_MAX));
  if (wrong !== undefined) {
    return `wrote a ${name} in which ${wrong[0]} is not from -${REWARD_MAX} to ${REWARD_MAX}`;
  }
  return { reward: values.reduce((sum, value) => sum + value, 0) / values.length, rewards };
}

type Rewards = HarborReward['rewards'];

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

const ofText = (text: string): Rewards | string => {
  if (text === '') return 'is empty';
  return NUMBER.test(text) ? { reward: Number(text) } : 'holds no number';
};

function ofJson(text: string): Rewards | string {
  if (text === '') return 'is empty';
  const value = parsedJson(text);
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

/** Harbor takes true and false as Python does: they are 1 and 0. */
const numberOf = (value: unknown): number | undefined =>
  typeof value === 'boolean' ? Number(value) : typeof value === 'number' ? value : undefined;

function parsedJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
