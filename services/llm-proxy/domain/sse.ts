// Server-sent events: bytes in, data of whole events out.
import type { JsonValue } from './json.ts';

const LINE_END = 0x0a;
const EVENT_END = Buffer.from('\n\n');
const BYTE_ORDER = '\ufeff';

/** Takes bytes as they come, in whatever pieces, and gives the data of each event that they complete. */
export class EventDecoder {
  /** Of a line that has not ended. */
  #rest: Buffer[] = [];
  /** Of the event that has not ended. */
  #data: string | undefined;
  #begun = false;

  /** The bytes are the caller's again when it returns. */
  push(bytes: Buffer): string[] {
    // No character in several bytes has the byte of a line's end in it: whole lines are whole characters.
    const whole = bytes.lastIndexOf(LINE_END) + 1;
    const rest = this.#rest;
    if (whole > 0) this.#rest = [];
    if (whole < bytes.length) this.#rest.push(Buffer.from(bytes.subarray(whole)));
    if (whole === 0) return [];
    if (rest.length === 0) return this.#events(bytes.toString('utf8', 0, whole));
    return this.#events(Buffer.concat([...rest, bytes.subarray(0, whole)]).toString('utf8'));
  }

  /** What the last event was, where a stream ends with it instead of with an empty line. */
  end(): string[] {
    return this.push(EVENT_END);
  }

  #events(lines: string): string[] {
    const events: string[] = [];
    // A mark of the order of bytes may stand before all.
    let from = !this.#begun && lines.startsWith(BYTE_ORDER) ? 1 : 0;
    this.#begun = true;
    for (let end = lines.indexOf('\n'); end >= 0; end = lines.indexOf('\n', from)) {
      this.#line(lines.slice(from, lines[end - 1] === '\r' ? end - 1 : end), events);
      from = end + 1;
    }
    return events;
  }

  #line(line: string, events: string[]): void {
    if (line === '') {
      if (this.#data !== undefined) events.push(this.#data);
      this.#data = undefined;
    } else if (line.startsWith('data:')) {
      const data = line.slice(line[5] === ' ' ? 6 : 5);
      this.#data = this.#data === undefined ? data : `${this.#data}\n${data}`;
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
