// LaTeX as plain text, for what answers are written with. It is read once, from its beginning to its end.

/** Between a whole number and a fraction that follows it: together they are one number. */
export const MIXED = '&';

const GROUPS_AS_TEXT = new Set(
  'text textbf textit textrm mathrm mathbf mathit mathsf operatorname mbox boxed'.split(' '),
);
const FRACTIONS = new Set(['frac', 'dfrac', 'tfrac', 'cfrac']);
const DROPPED = new Set(
  'left right big Big bigl bigr Bigl Bigr displaystyle limits , : ; ! quad qquad thinspace $ ( ) [ ]'.split(
    ' ',
  ),
);
const WRITTEN: ReadonlyMap<string, string> = new Map([
  ...([' ', '%', '{', '}'] as const).map((one) => [one, one] as const),
  ...([
    ['\\', ' '],
    ['circ', '°'],
    ['degree', '°'],
    ['pi', 'π'],
    ['infty', '∞'],
  ] as const),
  ...([
    ['cdot', '*'],
    ['times', '*'],
    ['div', '/'],
    ['leq', '≤'],
    ['le', '≤'],
  ] as const),
  ...([
    ['geq', '≥'],
    ['ge', '≥'],
    ['neq', '≠'],
    ['ne', '≠'],
    ['cup', '∪'],
    ['in', '∈'],
    ['pm', '±'],
  ] as const),
]);
const SIGNS: ReadonlyMap<string, string> = new Map([
  ...([
    ['−', '-'],
    ['–', '-'],
    ['×', '*'],
    ['·', '*'],
    ['÷', '/'],
    ['²', '^2'],
    ['³', '^3'],
    ['\u00a0', ' '],
    ['~', ' '],
  ] as const),
  // Of currencies, Markdown, and LaTeX's own: they say nothing here.
  ...(['$', '€', '£', '`'] as const).map((one) => [one, ''] as const),
]);

/** Braces of sets are kept, those of LaTeX's arguments are not. */
export function plainOf(latex: string): string {
  return new Reader(latex).all();
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  all(): string {
    const text = this.#text.trim();
    // Written without a backslash: nothing stands before it that it could be an argument of.
    const isSet = text.startsWith('{') && text.endsWith('}');
    return isSet ? `{${new Reader(text.slice(1, -1)).#until('')}}` : this.#until('');
  }

  /** Up to a brace that closes, or to the end. */
  #until(end: string): string {
    let out = '';
    while (this.#at < this.#text.length) {
      const character = this.#text.charAt(this.#at++);
      if (character === end) break;
      if (character === '\\') out += this.#command(out);
      else if (character === '{') out += grouped(this.#until('}'), out);
      else if (character === '√') out += this.#radical();
      else out += SIGNS.get(character) ?? character;
    }
    return out;
  }

  #command(before: string): string {
    const name = /^(?:[A-Za-z]+|.)?/s.exec(this.#text.slice(this.#at, this.#at + NAME_CHARS_MAX))?.[0] ?? '';
    this.#at += name.length;
    if (DROPPED.has(name)) return this.#afterDropped(name);
    if (GROUPS_AS_TEXT.has(name)) return ` ${this.#argument()} `;
    if (FRACTIONS.has(name)) {
      const fraction = `${inParentheses(this.#argument())}/${inParentheses(this.#argument())}`;
      return /\d\s*$/.test(before.slice(-2)) ? `${MIXED}${fraction}` : fraction;
    }
    if (name === 'sqrt') return this.#root();
    return WRITTEN.get(name) ?? `\\${name} `;
  }

  /** `\right.` closes what nothing is written for. */
  #afterDropped(name: string): string {
    if ((name === 'left' || name === 'right') && this.#text[this.#at] === '.') this.#at++;
    return '';
  }

  #root(): string {
    let degree = '';
    if (this.#text[this.#at] === '[') {
      this.#at++;
      degree = this.#until(']');
    }
    return `sqrt${degree}(${this.#argument()})`;
  }

  /** Of `√`: a whole number, a letter, or what stands in brackets. */
  #radical(): string {
    const [operand] = /^(?:\d+|\p{L})/u.exec(this.#text.slice(this.#at)) ?? [];
    if (operand === undefined) return this.#text[this.#at] === '{' ? `sqrt(${this.#argument()})` : 'sqrt';
    this.#at += operand.length;
    return `sqrt(${operand})`;
  }

  /** A group, a command, or one character. */
  #argument(): string {
    while (this.#text[this.#at] === ' ') this.#at++;
    const character = this.#text.charAt(this.#at++);
    if (character === '{') return this.#until('}').trim();
    return character === '\\' ? this.#command('').trim() : character;
  }
}

/** Longer names of commands are none that are known. */
const NAME_CHARS_MAX = 20;

/** Of an exponent or an index of several signs they tell where it ends; elsewhere braces group what is whole by itself. */
const grouped = (inner: string, before: string): string =>
  before.endsWith('^') || before.endsWith('_') ? inParentheses(inner.trim()) : inner;

const inParentheses = (text: string): string => (/^[\p{L}\d.]*$/u.test(text) ? text : `(${text})`);
