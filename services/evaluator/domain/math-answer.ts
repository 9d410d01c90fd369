// The answer that a reply gives: behind its last `Answer:`, else in its last `\boxed{}`, else its last number.
import { ANSWER_CHARS_MAX, sameAnswer } from './math-value.ts';

export type AnswerForm = 'answer' | 'boxed' | 'number' | 'none';

export interface Given {
  readonly form: AnswerForm;
  readonly text: string;
}

/** Of the end of a reply: what is looked through. */
const REPLY_CHARS_MAX = 200_000;
const LABEL = /\banswer\b[*_`]*[ \t]*(?:is[ \t]*)?[:：]/gi;
/** In the forms of which the value is known: 3 1/2, \frac{1}{2}, 1.2e3, 6 × 10^3. What stands before a dash is no range's end. */
const NUMBER = new RegExp(
  [
    String.raw`(?:(?<![\p{L}\d)\]}])[-−])?(?:(?:\d+ ?)?\\[dt]?frac\{\d+\}\{\d+\}`,
    String.raw`|(?:\d+ (?=\d+\/\d))?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)`,
    String.raw`(?:e[+-]?\d+|(?: ?(?:[×·*]|\\times|\\cdot) ?10)?\^(?:\{[-−+]?\d+\}|[-−+]?\d+))?(?:\/\d+)?)%?`,
  ].join(''),
  'giu',
);
/** What stands in a line before an answer, or alone in it. */
const MARKS = /^(?:[\s*_`>]|\$\$|\\\[)+/;

export function answerIn(reply: string): Given {
  const text = reply.slice(-REPLY_CHARS_MAX);
  const labelled = behindLabel(text);
  if (labelled !== undefined) return { form: 'answer', text: lastBoxed(labelled) ?? labelled };
  const boxed = lastBoxed(text);
  if (boxed !== undefined) return { form: 'boxed', text: boxed };
  const number = text.match(NUMBER)?.at(-1);
  return number === undefined ? { form: 'none', text: '' } : { form: 'number', text: number };
}

/** The rest of the line behind the last label; the next line that says something, where that is empty. */
function behindLabel(text: string): string | undefined {
  const found = [...text.matchAll(LABEL)].at(-1);
  if (found === undefined) return undefined;
  const rest = text.slice(found.index + found[0].length).replace(MARKS, '');
  const [line = ''] = rest.slice(0, ANSWER_CHARS_MAX + 1).split('\n');
  return line.trim() === '' ? undefined : line.trim();
}

const BOXED = /\\(?:boxed|fbox)\s*\{/g;

/** The inside of the last one that is closed. */
function lastBoxed(text: string): string | undefined {
  for (const { index, 0: head } of [...text.matchAll(BOXED)].reverse().slice(0, BOXES_MAX)) {
    const inside = insideOf(text, index + head.length);
    if (inside !== undefined) return inside;
  }
  return undefined;
}

/** Of those that are not closed, or hold too much. */
const BOXES_MAX = 16;

function insideOf(text: string, from: number): string | undefined {
  let depth = 1;
  for (let at = from; at < text.length && at <= from + ANSWER_CHARS_MAX; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '{') depth++;
    else if (text[at] === '}') depth--;
    if (depth === 0) return text.slice(from, at);
  }
  return undefined;
}

/** Whether it is one of those that are right. A mark behind it is a factorial where the right one has some. */
export const isRight = ({ text }: Given, answers: readonly string[]): boolean => {
  const calm = text.replace(EXCLAIMED, '');
  return answers.some((one) => sameAnswer(one.includes('!') ? text : calm, one));
};

const EXCLAIMED = /!+(?=[\s"'*_$]*$)/;
