// Server-sent events: bytes in, data of whole events out.
import type { JsonValue } from './json.ts';

const LINE_END = 0x0a;
const EVENT_END = Buffer.from('\n\n');
const DATA_TEXT = 'data: ';
const DATA = Buffer.from(DATA_TEXT);
const LINE_BREAK = /[\r\n]/;
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
    return this.#one(bytes) ?? this.#pushed(bytes);
  }

  /** Where the bytes are one event that has one line, as most pieces are; undefined: they are not. */
  #one(bytes: Buffer): string[] | undefined {
    const end = bytes.length - EVENT_END.length;
    const from = DATA.length;
    if (!this.#begun || this.#rest.length > 0 || this.#data !== undefined || end <= from) return undefined;
    if (bytes[end] !== LINE_END || bytes[end + 1] !== LINE_END || bytes[0] !== DATA[0]) return undefined;
    const text = bytes.toString('utf8', 0, end);
    return text.startsWith(DATA_TEXT) && !LINE_BREAK.test(text) ? [text.slice(from)] : undefined;
  }

  #pushed(bytes: Buffer): string[] {
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

/** JSON, written already, on what every client takes for one line. */
export const onOneLine = (json: string): string => json.replace(LINE_ENDS, escaped);

const escaped = (end: string): string => `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The same of a value. */
export const lineOf = (value: JsonValue): string => onOneLine(JSON.stringify(value));

/** One event. JSON holds no line break. */
export const eventOf = (data: string): string => `data: ${data}\n\n`;

/** The data of the event that ends a stream of the OpenAI dialect. */
export const DONE = '[DONE]';
