// Rewards that a verifier of a task has written to files, by name.
import type { JsonValue } from '@bufbuild/protobuf';

/** Of a file with rewards; above, there is none in it. */
export const REWARD_FILE_BYTES_MAX = 64 * 1024;
/** Largest reward, above or below 0. */
const REWARD_MAX = 1_000_000;

export type Rewards = Readonly<Record<string, number>>;

export interface WrittenReward {
  readonly reward: number;
  /** By name, as they were written. */
  readonly rewards: Rewards;
}

/** What one file says, by `read`, which says why it holds none; or why that is no reward. `name`: of the file. */
export function writtenReward(
  name: string,
  bytes: Uint8Array,
  read: (text: string) => Rewards | string,
): WrittenReward | string {
  if (bytes.byteLength > REWARD_FILE_BYTES_MAX) {
    return `wrote a ${name} of ${bytes.byteLength} bytes, above ${REWARD_FILE_BYTES_MAX}`;
  }
  const text = Buffer.from(bytes).toString('utf8').trim();
  const rewards = text === '' ? 'is empty' : read(text);
  if (typeof rewards === 'string') return `wrote a ${name} that ${rewards}`;
  const values = Object.values(rewards);
  const wrong = Object.entries(rewards).find(([, value]) => !(Math.abs(value) <= REWARD_MAX));
  if (wrong !== undefined) {
    return `wrote a ${name} in which ${wrong[0].slice(0, 100)} is not from -${REWARD_MAX} to ${REWARD_MAX}`;
  }
  return { reward: values.reduce((sum, value) => sum + value, 0) / values.length, rewards };
}

/** True and false are 1 and 0, as they are to Python. */
export const numberOf = (value: unknown): number | undefined =>
  typeof value === 'boolean' ? Number(value) : typeof value === 'number' ? value : undefined;

/** Undefined: it is no JSON. */
export function jsonIn(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
