// Reading parsed JSON without trust.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { ExactNumber } from './exact-numbers.ts';

export type { JsonObject, JsonValue };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);

/** The value if it is an object, else an empty one. */
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});

/** The value if it is an array, else an empty one. */
export const arrayOf = (value: unknown): readonly JsonValue[] =>
  Array.isArray(value) ? (value as readonly JsonValue[]) : [];

/** The value if it is a string that is not empty. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** The value if it is a whole number of at least 0, else 0. */
export const countOf = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;

/** The value if it is an array of int32 token ids, or a column of them. One pass: prompts have hundreds of thousands. */
export function idsOf(value: unknown): Int32Array | undefined {
  if (value instanceof Int32Array) return value;
  if (!Array.isArray(value)) return undefined;
  const ids = new Int32Array(value.length);
  for (let i = 0; i < ids.length; i++) {
    const id: unknown = value[i];
    if (typeof id !== 'number' || id !== (id | 0)) return undefined;
    ids[i] = id;
  }
  return ids;
}

/** JSON with sorted keys and without white space: one text for one value. */
export function canonicalJson(value: JsonValue): string {
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber)
    return JSON.stringify(value);
  let text = '';
  let mark = '';
  if (Array.isArray(value)) {
    for (const one of value) {
      text += mark + canonicalJson(one);
      mark = ',';
    }
    return `[${text}]`;
  }
  for (const key of Object.keys(value).sort()) {
    text += `${mark}${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`;
    mark = ',';
  }
  return `{${text}}`;
}
