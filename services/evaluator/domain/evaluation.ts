// What an evaluator tells beside the reward: JSON within a limit.
import type { JsonObject } from '@bufbuild/protobuf';
import { stripAnsi, type TestResults } from './test-results.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;

/** The end of an output, readable: no colours, no control characters but line ends and tabs. */
export function tailOf(output: Uint8Array, maxChars: number): string {
  const text = stripAnsi(Buffer.from(output).toString('utf8'));
  return text.replaceAll(CONTROL, '').slice(-maxChars).toWellFormed();
}

/** Results as JSON, those first that differ from what was expected. */
export function resultsJson(parsed: TestResults, wanted: TestResults): JsonObject {
  const differs = ([name, status]: [string, string]): number => (wanted.get(name) === status ? 1 : 0);
  const entries = [...parsed].sort((a, b) => differs(a) - differs(b));
  return Object.fromEntries(entries.map(([name, status]) => [name.toWellFormed(), status]));
}

/**
 * Cut an evaluation down to `maxBytes` of JSON: half of the longest part goes until it fits, and `cut` names the parts
 * that are no longer whole.
 */
export function bounded(evaluation: JsonObject, maxBytes: number): JsonObject {
  const parts = { ...evaluation };
  const cut = new Set<string>();
  for (;;) {
    const whole = cut.size > 0 ? { ...parts, cut: [...cut] } : parts;
    if (sizeBytes(whole) <= maxBytes) return whole;
    const [name, value] = Object.entries(parts).reduce((a, b) => (sizeBytes(b[1]) > sizeBytes(a[1]) ? b : a));
    parts[name] = halved(value);
    cut.add(name);
  }
}

const sizeBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

function halved(value: JsonObject[string]): NonNullable<JsonObject[string]> {
  if (typeof value === 'string')
    return value.slice(-Math.floor(value.length / 2) || value.length).toWellFormed();
  if (Array.isArray(value)) return value.slice(0, Math.floor(value.length / 2));
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value);
    const [name, inner] = entries.length === 1 ? (entries[0] ?? []) : [];
    // What holds one list alone keeps the beginning of that; a name that is long by itself goes.
    if (name !== undefined && typeof inner === 'object') {
      const half = halved(inner);
      if (sizeBytes(half) < sizeBytes(inner)) return { [name]: half };
    }
    return Object.fromEntries(entries.slice(0, Math.floor(entries.length / 2)));
  }
  return false;
}
