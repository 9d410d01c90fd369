// Whether two answers are the same one: numbers by their value, sets and tuples by their elements, all else by its text. This is no
// algebra: x + 1 and 1 + x are two answers.
import { plainOf } from './math-latex.ts';
import { numberKey } from './math-number.ts';

/** Longest answer that is read; above, none is equal to it. */
export const ANSWER_CHARS_MAX = 1_000;

interface Value {
  readonly key: string;
  /** `x` of `x = 3`; empty: none. */
  readonly name: string;
  /** Of a number: empty: none. */
  readonly unit: string;
}

/** Names and units count only where both have one. */
export function sameAnswer(a: string, b: string): boolean {
  const [left, right] = [answerValue(a), answerValue(b)];
  if (left === undefined || right === undefined) return false;
  return left.key === right.key && agree(left.name, right.name) && agree(left.unit, right.unit);
}

/** Whether there is something to compare with. */
export const isAnswer = (text: string): boolean => answerValue(text) !== undefined;

const agree = (a: string, b: string): boolean => a === '' || b === '' || a === b;

function answerValue(text: string): Value | undefined {
  if (text.length > ANSWER_CHARS_MAX) return undefined;
  return plainValue(plainOf(text.normalize('NFC')));
}

function plainValue(text: string): Value | undefined {
  const { name, rest } = named(cleaned(text.replaceAll(/\^\(?°\)?/g, '°')));
  if (rest === '') return undefined;
  const { number, unit } = measured(rest);
  return { key: number === undefined ? keyOf(rest) : `number ${number}`, name, unit };
}

/** Without what ends a sentence, emphasis and quotes around it. */
function cleaned(text: string): string {
  const spaced = text.replaceAll(/[\s"'*_]+$|^[\s"'*_]+|\s+/g, (found, at: number) =>
    at === 0 || at + found.length === text.length ? '' : ' ',
  );
  const end = /[.,;:?\s]+$/.exec(spaced.slice(-ENDS_CHARS_MAX))?.[0].length ?? 0;
  return spaced.slice(0, spaced.length - end);
}

const ENDS_CHARS_MAX = 8;
/** `x = 3`, `f(x) = 3`, `(x, y) = (3, 4)`, `x ∈ [0, 1]`. */
const NAMED =
  /^(\p{L}[\p{L}\d_']*(?:\([\p{L}, ]*\))?|\((?:\p{L}[\p{L}\d_']*, ?)+\p{L}[\p{L}\d_']*\)) ?[=∈] ?([^=∈]+)$/u;

/** Of `x = 3`, and of `2x = 6 = ...` what stands last. */
function named(text: string): { name: string; rest: string } {
  const [, name = '', rest] = NAMED.exec(text) ?? [];
  if (rest !== undefined) return { name: name.replaceAll(' ', ''), rest: rest.trim() };
  // `5!=120` is a factorial.
  const isList = /[,{≤≥≠<>∈]| (?:and|or) | !=|\/=|\\not\b|\bnot\b/.test(text);
  return { name: '', rest: isList ? text : text.slice(text.lastIndexOf('=') + 1).trim() };
}

/** The first name of each stands for the others; words of more than three letters have no `s` at their end. */
const UNIT_NAMES = [
  'mm millimeter millimetre',
  'cm centimeter centimetre',
  'm meter metre',
  'km kilometer kilometre',
  'g gram',
  'kg kilogram',
  's sec second',
  'min minute',
  'h hr hour',
  'in inch inche',
  'ft foot feet',
  'yd yard',
  'mi mile',
  'mg milligram',
  'lb pound lbs',
  'oz ounce',
  'l liter litre',
  'ml milliliter millilitre',
  'ms millisecond',
  'hz hertz',
  'kw kilowatt',
  'am',
  'pm',
];
const UNITS: ReadonlyMap<string, string> = new Map(
  UNIT_NAMES.map((names) => names.split(' ')).flatMap((names) =>
    names.map((one) => [one, names[0] ?? one] as const),
  ),
);
/** They are a part of the number, or of what is none. */
const NO_UNITS = new Set(
  'hundred thousand million billion trillion dozen half third quarter percent pi sqrt mod and or not to squared cubed factorial plus minus times over'.split(
    ' ',
  ),
);
const POWERS: ReadonlyMap<string, string> = new Map([
  ...([
    ['sq', '2'],
    ['square', '2'],
    ['cubic', '3'],
  ] as const),
  ...([
    ['^2', '2'],
    ['^3', '3'],
  ] as const),
]);
/** Its quantifiers are bounded, as each end of the number is tried. */
const MEASURED = /^(.*[\d)%])(?: ?°|( ?)((?:[A-Za-z]{1,20}[ /]){0,3}[A-Za-z]{1,20})( ?\^[23])?)$/;

/** A number with the unit behind it: 5 cm, 45°, 12 square meters. */
function measured(text: string): { number: string | undefined; unit: string } {
  const whole = numberKey(text);
  const [, value, blank, words, power = ''] = whole === undefined ? (MEASURED.exec(text) ?? []) : [];
  const number = value === undefined ? undefined : numberKey(value);
  if (number === undefined) return { number: whole, unit: '' };
  if (words === undefined) return { number, unit: 'degree' };
  const unit = unitOf(words.toLowerCase().split(/[ /]/), power, blank === '');
  return unit === undefined ? { number: undefined, unit: '' } : { number, unit };
}

/** `isClose`: no blank stands before it. */
function unitOf(words: readonly string[], sign: string, isClose: boolean): string | undefined {
  const [first = '', ...more] = words;
  // 5cm, and not 5x: else they are names.
  if (isClose && (first.length < 2 || !UNITS.has(first))) return undefined;
  const power = POWERS.get(first) ?? POWERS.get(sign.trim()) ?? '';
  const names = (POWERS.has(first) ? more : words).map(unitName);
  // One or two letters that are none are names: 2 x, 2 ab.
  const isName = (one: string): boolean => one.length <= 2 && one !== 'of' && !UNITS.has(one);
  const isUnit = !names.some((one) => isName(one) || NO_UNITS.has(one));
  return isUnit && names.length > 0 ? names.join(' ') + power : undefined;
}

function unitName(word: string): string {
  const one = word.length > 3 && word.endsWith('s') ? word.slice(0, -1) : word;
  return UNITS.get(one) ?? one;
}

const OPEN = '([{';
const CLOSED = ')]}';

/** What is no number. */
function keyOf(text: string): string {
  const isWhole = isBracketed(text);
  const [open, closed] = isWhole ? [text.charAt(0), text.slice(-1)] : ['', ''];
  const inner = isWhole ? text.slice(1, -1) : text.replaceAll(/ (?:and|or) /g, ',');
  const keys = isWhole || partsOf(inner).length > 1 ? elementKeys(inner) : [];
  const isTuple = isWhole && open !== '{';
  // Brackets around one thing alone say nothing, unless they are those of a matrix or an interval.
  if (keys.length === 1 && (open === '{' || open === '(')) return keys[0] ?? '';
  if (isTuple && keys.length > 0) return `tuple ${open}${keys.join(',')}${closed}`;
  if (open === '{' || keys.length > 1) return `set ${[...new Set(keys)].sort().join(',')}`;
  return `text ${textKey(text)}`;
}

/** Whether the bracket that it begins with is closed by the one that it ends with, be they those of an interval. */
function isBracketed(text: string): boolean {
  if (!OPEN.includes(text.charAt(0)) || !CLOSED.includes(text.slice(-1)) || text.length < 2) return false;
  if ((text[0] === '{') !== text.endsWith('}')) return false;
  const open = depths(text);
  return open.indexOf(0) === open.length - 1;
}

/** How many brackets are open behind each character. */
function depths(text: string): number[] {
  let depth = 0;
  return [...text].map((character) => {
    if (OPEN.includes(character)) depth++;
    if (CLOSED.includes(character)) depth--;
    return depth;
  });
}

/** Names of elements count where these have several: x = 1, y = 2. */
function elementKeys(text: string): string[] {
  const values = partsOf(text).map(plainValue);
  const names = new Set(values.map((value) => value?.name ?? ''));
  return values.map((value) => `${names.size > 1 ? `${value?.name} ` : ''}${value?.key ?? ''}`);
}

/** Between commas outside of brackets. */
function partsOf(text: string): string[] {
  const parts = [''];
  const open = depths(text);
  for (const [at, character] of [...text].entries()) {
    if (character === ',' && open[at] === 0) parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts.map((part) => part.trim());
}

/** Blanks say nothing, and words are words in any case. */
function textKey(text: string): string {
  const close = text.replaceAll(/^\+|\s/g, '').replaceAll(/(?<=[\p{L}\d)])\*(?=[\p{L}(\\])/gu, '');
  return /^\p{L}+$/u.test(close) ? close.toLowerCase() : close;
}
