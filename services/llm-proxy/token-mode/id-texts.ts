// Prompts as text: a turn writes out its new ids only, behind the text of the call that it goes on from.
import { ID_TEXT_BYTES_MAX, ID_TEXTS_PER_SESSION_MAX } from '../../common/limits.ts';
import type { CallIds } from '../domain/attempt-state.ts';
import { idBytes, writeIds } from '../domain/id-digits.ts';

/** A recorded call, and its ids. */
export interface IdsOfCall {
  readonly index: number;
  readonly ids: CallIds;
}

/** The ids of a recorded call, each behind a comma: the first `sizeBytes` of the memory. Behind them is room for what comes next. */
interface IdText {
  readonly call: number;
  readonly length: number;
  readonly memory: Buffer;
  readonly sizeBytes: number;
}

/** What stands before the first id. */
const FIRST_COMMA = 1;

const NOTHING: IdText = { call: -1, length: 0, memory: Buffer.alloc(0), sizeBytes: 0 };

export class IdTexts {
  /** By session, that used last at the end; of each the texts used last first. */
  readonly #known = new Map<string, readonly IdText[]>();
  #sizeBytes = 0;

  /** The ids of the call, then these, as the members of a JSON array in pieces. */
  of(session: string, { index, ids }: IdsOfCall, tail: Int32Array): readonly Buffer[] {
    const known = this.#known.get(session) ?? [];
    const before = known.find(({ call }) => ids.extend(call));
    const text = before?.call === index ? before : extended(before ?? NOTHING, index, ids);
    // It has the memory of the text before it.
    this.#keep(session, [text, ...known.filter((one) => one !== before)]);
    const whole = text.memory.subarray(FIRST_COMMA, text.sizeBytes);
    return tail.length === 0 ? [whole] : [whole, digits(tail)];
  }

  #keep(session: string, texts: readonly IdText[]): void {
    this.#drop(session);
    const kept = texts.slice(0, ID_TEXTS_PER_SESSION_MAX);
    this.#known.set(session, kept);
    this.#sizeBytes += sizeOf(kept);
    for (const oldest of this.#known.keys()) {
      if (this.#sizeBytes <= ID_TEXT_BYTES_MAX || oldest === session) return;
      this.#drop(oldest);
    }
  }

  #drop(session: string): void {
    this.#sizeBytes -= sizeOf(this.#known.get(session));
    this.#known.delete(session);
  }
}

const sizeOf = (texts: readonly IdText[] = []): number =>
  texts.reduce((sum, { memory }) => sum + memory.length, 0);

/** What is being sent of the earlier text stays as it is: writing goes on behind it. */
function extended({ length, memory, sizeBytes }: IdText, call: number, ids: CallIds): IdText {
  const fresh = ids.from(length);
  const end = sizeBytes + idBytes(fresh);
  const roomy = end <= memory.length ? memory : grown(memory, sizeBytes, end);
  writeIds(fresh, roomy, sizeBytes);
  return { call, length: ids.length, memory: roomy, sizeBytes: end };
}

/** Half as large again: what is copied in all stays below three times the text. */
function grown(memory: Buffer, sizeBytes: number, end: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.ceil(end * 1.5));
  memory.copy(larger, 0, 0, sizeBytes);
  return larger;
}

function digits(ids: Int32Array): Buffer {
  const bytes = Buffer.allocUnsafe(idBytes(ids));
  writeIds(ids, bytes, 0);
  return bytes;
}
