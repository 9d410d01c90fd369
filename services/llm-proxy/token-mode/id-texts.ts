// Prompts as text: a turn writes out its new ids only, behind the text of the prompt that it goes on from.
import { ID_TEXT_BYTES_MAX } from '../../common/limits.ts';
import { startsWith } from '../domain/bridge.ts';
import type { TokenPrompt } from '../engines/token-call.ts';

/** Pieces of one text; more are put together. */
const PIECES_MAX = 64;

export class IdTexts {
  /** Of each session the prompt sent last; the session used last comes last. */
  readonly #last = new Map<string, TokenPrompt>();
  #sizeBytes = 0;

  /** The ids with their text. */
  of(session: string, ids: Int32Array): TokenPrompt {
    const before = this.#last.get(session);
    const known = before !== undefined && startsWith(ids, before.ids) ? before : undefined;
    const prompt = { ids, text: known === undefined ? [written(ids)] : behind(known, ids) };
    this.#keep(session, prompt);
    return prompt;
  }

  #keep(session: string, prompt: TokenPrompt): void {
    this.#drop(session);
    this.#last.set(session, prompt);
    this.#sizeBytes += sizeOf(prompt);
    for (const oldest of this.#last.keys()) {
      if (this.#sizeBytes <= ID_TEXT_BYTES_MAX || oldest === session) return;
      this.#drop(oldest);
    }
  }

  #drop(session: string): void {
    const known = this.#last.get(session);
    if (known === undefined) return;
    this.#sizeBytes -= sizeOf(known);
    this.#last.delete(session);
  }
}

const sizeOf = ({ text }: TokenPrompt): number => text.reduce((sum, { length }) => sum + length, 0);

/** Memory of its own: a piece of Node's pool would keep the whole slab alive. */
function written(ids: Int32Array, before = ''): Buffer {
  const text = before + ids.join();
  const bytes = Buffer.allocUnsafeSlow(text.length);
  bytes.write(text, 'latin1');
  return bytes;
}

function behind({ ids: before, text }: TokenPrompt, ids: Int32Array): readonly Buffer[] {
  const fresh = ids.subarray(before.length);
  if (fresh.length === 0) return text;
  const pieces = text.length < PIECES_MAX ? text : [Buffer.concat(text)];
  return [...pieces, written(fresh, before.length === 0 ? '' : ',')];
}
