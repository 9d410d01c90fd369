// Server-sent events: bytes in, data of whole events out.
import type { JsonValue } from './json.ts';

/** Takes bytes as they come, in whatever pieces, and gives the data of each event that they complete. */
export class EventDecoder {
  readonly #text = new TextDecoder();
  #rest = '';
  #data: string[] = [];

  push(bytes: Uint8Array): string[] {
    const text = this.#rest + this.#text.decode(bytes, { stream: true });
    const events: string[] = [];
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      this.#line(text.slice(from, text[end - 1] === '\r' ? end - 1 : end), events);
      from = end + 1;
    }
    this.#rest = text.slice(from);
    return events;
  }

  #line(line: string, events: string[]): void {
    if (line === '') {
      if (this.#data.length > 0) events.push(this.#data.join('\n'));
      this.#data = [];
    } else if (line.startsWith('data:')) {
      this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
  }
}

/** Ends of lines to some clients that are none to JSON. */
const LINE_ENDS = /[\u0085\u2028\u2029]/g;

/** JSON on what every client takes for one line. */
export const lineOf = (value: JsonValue): string =>
  JSON.stringify(value).replace(LINE_ENDS, (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** One event. JSON holds no line break. */
export const eventOf = (data: string): string => `data: ${data}\n\n`;

/** The data of the event that ends a stream of the OpenAI dialect. */
export const DONE = '[DONE]';
