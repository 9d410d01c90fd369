// Checks of single values, as the rules of requests use them.
import { isNumber } from '../domain/exact-numbers.ts';
import { isObject } from '../domain/json.ts';
import type { Check } from './faults.ts';

export const text: Check = { ok: (value) => typeof value === 'string', says: 'must be a string' };
export const flag: Check = { ok: (value) => typeof value === 'boolean', says: 'must be a boolean' };
export const object: Check = { ok: isObject, says: 'must be an object' };
export const array: Check = { ok: Array.isArray, says: 'must be an array' };

export const numberFrom = (least: number, most: number): Check => ({
  ok: (value) => typeof value === 'number' && value >= least && value <= most,
  says: `must be a number from ${least} to ${most}`,
});

export const wholeFrom = (least: number, most = Number.MAX_SAFE_INTEGER): Check => ({
  ok: (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most,
  says: `must be a whole number from ${least} to ${most}`,
});

export const oneOf = (...words: readonly string[]): Check => ({
  ok: (value) => typeof value === 'string' && words.includes(value),
  says: `must be one of ${words.join(', ')}`,
});

export const textOrTexts: Check = {
  ok: (value) => text.ok(value) || (Array.isArray(value) && value.every(text.ok)),
  says: 'must be a string or an array of strings',
};

/** A template of the harness's own could say anything, and run code at the engine. */
export const templateSettings: Check = {
  ok: (value) => isObject(value) && value['chat_template'] === undefined,
  says: 'must be an object, without chat_template',
};

export const numbers: Check = {
  ok: (value) => Array.isArray(value) && value.every(isNumber),
  says: 'must be an array of numbers',
};

export const numbersByName: Check = {
  ok: (value) => isObject(value) && Object.values(value).every(isNumber),
  says: 'must be an object of numbers',
};
