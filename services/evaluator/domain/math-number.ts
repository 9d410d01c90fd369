// Numbers as they are written, as exact fractions: 1/2, 0.5, 50%, 1,000, 1.2e3 and 1 1/2.
import { MIXED } from './math-latex.ts';

const DECIMAL = /^([+-]?)(\d{1,3}(?:,\d{3})+|\d*)(?:\.(\d*))?$/;
const SCIENTIFIC = /^(.*?)(?:e| ?\* ?10 ?\^ ?\(?)([+-]?\d{1,3})\)?$/i;
const PERCENT = /^(.*?)(?:%| percent)$/;
const WHOLE_AND_FRACTION = new RegExp(`^([+-]?)(\\d+)(?: ?${MIXED}| )(\\d+/\\d+)$`);

/** Its digits are bounded by its text. */
interface Fraction {
  readonly top: bigint;
  /** Above 0. */
  readonly bottom: bigint;
}

/** `top/bottom`, reduced; undefined where it is no number. */
export function numberKey(text: string): string | undefined {
  const fraction = fractionOf(text.trim());
  if (fraction === undefined) return undefined;
  const { top, bottom } = fraction;
  const divisor = commonDivisor(top < 0n ? -top : top, bottom);
  return `${top / divisor}/${bottom / divisor}`;
}

function fractionOf(text: string): Fraction | undefined {
  const inner = unwrapped(text);
  if (inner.length < text.length) return bracketed(inner);
  const positive = text.startsWith('-(') ? unwrapped(text.slice(1)) : text;
  if (positive.length + 1 < text.length) return negated(bracketed(positive));
  const [, part] = PERCENT.exec(text) ?? [];
  if (part !== undefined) return divided(fractionOf(part.trim()), { top: 100n, bottom: 1n });
  const [, sign, whole, rest] = WHOLE_AND_FRACTION.exec(text) ?? [];
  if (rest !== undefined) return mixed(sign === '-', BigInt(whole ?? 0), fractionOf(rest));
  const slash = text.indexOf('/');
  if (slash < 0) return scaledOf(text);
  if (text.includes('/', slash + 1)) return undefined;
  return divided(partOf(text.slice(0, slash).trim()), partOf(text.slice(slash + 1).trim()));
}

const unwrapped = (text: string): string => {
  const isWrapped = text.startsWith('(') && text.endsWith(')') && text.indexOf(')') === text.length - 1;
  return isWrapped ? text.slice(1, -1).trim() : text;
};

/** Between brackets a comma separates. */
const bracketed = (inner: string): Fraction | undefined =>
  inner.includes(',') ? undefined : fractionOf(inner);

const negated = (fraction: Fraction | undefined): Fraction | undefined =>
  fraction && { ...fraction, top: -fraction.top };

/** Above or below the line. */
const partOf = (text: string): Fraction | undefined =>
  text.startsWith('-(') ? negated(scaledOf(unwrapped(text.slice(1)))) : scaledOf(unwrapped(text));

function mixed(isNegative: boolean, whole: bigint, rest: Fraction | undefined): Fraction | undefined {
  if (rest === undefined) return undefined;
  const top = whole * rest.bottom + rest.top;
  return { top: isNegative ? -top : top, bottom: rest.bottom };
}

function divided(a: Fraction | undefined, b: Fraction | undefined): Fraction | undefined {
  if (a === undefined || b === undefined || b.top === 0n) return undefined;
  const [top, bottom] = [a.top * b.bottom, a.bottom * b.top];
  return bottom < 0n ? { top: -top, bottom: -bottom } : { top, bottom };
}

/** With its power of ten. */
function scaledOf(text: string): Fraction | undefined {
  const [, mantissa, exponent] = SCIENTIFIC.exec(text.replace(/^10 ?\^/, '1*10^')) ?? [];
  if (mantissa === undefined || exponent === undefined) return decimalOf(text);
  const value = decimalOf(mantissa.trim());
  const power = 10n ** BigInt(exponent.replace(/^[+-]/, ''));
  if (value === undefined) return undefined;
  return exponent.startsWith('-')
    ? { ...value, bottom: value.bottom * power }
    : { ...value, top: value.top * power };
}

function decimalOf(text: string): Fraction | undefined {
  const [, sign, whole = '', decimals = ''] = DECIMAL.exec(text.replace(/^([+-]) /, '$1')) ?? [];
  const digits = whole.replaceAll(',', '') + decimals;
  if (sign === undefined || digits === '') return undefined;
  const top = BigInt(digits);
  return { top: sign === '-' ? -top : top, bottom: 10n ** BigInt(decimals.length) };
}

function commonDivisor(a: bigint, b: bigint): bigint {
  while (b > 0n) [a, b] = [b, a % b];
  return a;
}
