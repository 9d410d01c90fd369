// Custom tools take free text. Engines know functions only: a custom tool is shown to the model as a function with one
// string, `input`, and a call of it is shown to the harness as the text alone.
import { isObject, type JsonObject, type JsonValue, textOf } from '../domain/json.ts';

/** The function that stands for a custom tool `{name, description, format}`. */
export function functionOfCustom({ name, description, format }: JsonObject): JsonObject {
  const grammar = isObject(format) && format['type'] === 'grammar' ? grammarOf(format) : undefined;
  return {
    type: 'function',
    function: {
      name: name ?? '',
      ...(description !== undefined && description !== null && { description }),
      parameters: {
        type: 'object',
        properties: { input: { type: 'string', ...(grammar !== undefined && { description: grammar }) } },
        required: ['input'],
        additionalProperties: false,
      },
    },
  };
}

/** OpenAI's chat form nests the grammar, its Responses form does not. */
function grammarOf(format: JsonObject): string {
  const { syntax, definition } = isObject(format['grammar']) ? format['grammar'] : format;
  return `Follows this ${textOf(syntax) ?? ''} grammar:\n${textOf(definition) ?? ''}`;
}

/** A call of a custom tool as the engine knows it. */
export const argumentsOfInput = (input: string): string => JSON.stringify({ input });

/** The text of a whole call. */
export function inputOf(args: JsonValue | undefined): string {
  const reader = new InputReader();
  return reader.push(typeof args === 'string' ? args : '') + reader.end();
}

const HEAD = /^\s*\{\s*"input"\s*:\s*"/;
/** A longer one is none: models that get lost in white space make one without end, which would be gone over each time. */
const HEAD_CHARS_MAX = 256;
/** What can still become the head. */
const HEAD_SO_FAR = /^\s*(\{\s*("(i(n(p(u(t("\s*(:\s*)?)?)?)?)?)?)?)?)?$/;
/** A run of plain characters, one whole escape, or the end of the string. */
const PIECE = /([^"\\]+)|(\\u[0-9a-fA-F]{4}|\\[^u])|(")/y;
/** The first half of a letter that takes two escapes, and what can still become the other half. */
const HIGH_HALF = /^\\u[dD][89abAB]/;
const LOW_HALF_SO_FAR = /^(\\(u[0-9a-fA-F]{0,3})?)?$/;

/**
 * Takes the arguments of a call piece by piece and gives the text of `input` as far as it is known. Arguments of any
 * other shape are given as they are: nothing that was sampled is lost.
 */
export class InputReader {
  #state: 'head' | 'text' | 'over' | 'raw' = 'head';
  #pending = '';

  push(piece: string): string {
    this.#pending += piece;
    if (this.#state === 'head') this.#readHead();
    if (this.#state === 'text') return this.#readText();
    if (this.#state === 'head') return '';
    return this.#rest();
  }

  /** What is left when the call is over. */
  end(): string {
    if (this.#state === 'head') this.#state = 'raw';
    return this.#rest();
  }

  #readHead(): void {
    const head = HEAD.exec(this.#pending);
    if (head !== null && head[0].length <= HEAD_CHARS_MAX) {
      this.#pending = this.#pending.slice(head[0].length);
      this.#state = 'text';
    } else if (this.#pending.length > HEAD_CHARS_MAX || !HEAD_SO_FAR.test(this.#pending)) {
      this.#state = 'raw';
    }
  }

  #readText(): string {
    let text = '';
    let at = 0;
    while (this.#state === 'text') {
      PIECE.lastIndex = at;
      const found = PIECE.exec(this.#pending);
      if (found === null) break;
      const [, plain, escaped] = found;
      if (escaped !== undefined && this.#isHalf(escaped, PIECE.lastIndex)) break;
      at = PIECE.lastIndex;
      if (plain !== undefined) text += plain;
      else if (escaped !== undefined) text += decoded(escaped);
      else this.#state = 'over';
    }
    this.#pending = this.#pending.slice(at);
    return text;
  }

  /** Whether an escape that ends there waits for the other half of its letter. */
  #isHalf(escaped: string, end: number): boolean {
    return HIGH_HALF.test(escaped) && LOW_HALF_SO_FAR.test(this.#pending.slice(end));
  }

  #rest(): string {
    const rest = this.#state === 'over' ? '' : this.#pending;
    this.#pending = '';
    return rest;
  }
}

function decoded(escaped: string): string {
  try {
    return JSON.parse(`"${escaped}"`) as string;
  } catch {
    return escaped;
  }
}
