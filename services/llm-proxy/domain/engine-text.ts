// The text of an engine's request: what the harness sent and the engine is to get is passed on in the harness's own
// bytes, never serialised again.
import type { JsonObject, JsonValue } from './json.ts';
import type { BodySource } from './known-body.ts';

/** A request body in the order of its members; `source` is where its messages come from, if from anywhere. */
export function engineText(body: JsonObject, source: BodySource | undefined): Buffer[] {
  const { messages } = body;
  if (source === undefined || !Array.isArray(messages)) return [Buffer.from(JSON.stringify(body))];
  const pieces = new Pieces();
  let mark = '{';
  for (const [key, value] of Object.entries(body)) {
    if (value === undefined) continue;
    pieces.text(`${mark}${JSON.stringify(key)}:`);
    if (key === 'messages') messagesInto(pieces, messages, source);
    else pieces.text(JSON.stringify(value));
    mark = ',';
  }
  pieces.text(mark === '{' ? '{}' : '}');
  return pieces.end();
}

/** Messages of the source that follow each other there are one piece. */
function messagesInto(pieces: Pieces, messages: readonly JsonValue[], source: BodySource): void {
  const { elements, spans, bytes } = source;
  let from = 0;
  pieces.text('[');
  for (let i = 0, at = 0; i < messages.length; ) {
    if (i > 0) pieces.text(',');
    // Those that are left out or added move the places of all behind them.
    from = placeOf(messages[i], elements, at);
    if (from < 0) {
      pieces.text(JSON.stringify(messages[i++]));
      continue;
    }
    let to = from;
    while (i < messages.length && to < elements.length && messages[i] === elements[to]) {
      i++;
      to++;
    }
    pieces.bytes(bytes.slice(spans.starts[from] as number, spans.ends[to - 1]));
    at = to;
  }
  pieces.text(']');
}

/** Messages left out in a row that are looked past: where all are others, each must not be looked for in all. */
const LEFT_OUT_MAX = 8;

function placeOf(message: JsonValue | undefined, elements: readonly JsonValue[], at: number): number {
  for (let i = at; i <= at + LEFT_OUT_MAX && i < elements.length; i++) if (elements[i] === message) return i;
  return -1;
}

class Pieces {
  readonly #done: Buffer[] = [];
  #text = '';

  text(text: string): void {
    this.#text += text;
  }

  bytes(bytes: readonly Buffer[]): void {
    this.#flush();
    this.#done.push(...bytes);
  }

  end(): Buffer[] {
    this.#flush();
    return this.#done;
  }

  #flush(): void {
    if (this.#text !== '') this.#done.push(Buffer.from(this.#text));
    this.#text = '';
  }
}
