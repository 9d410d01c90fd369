// Prompts as text: a turn writes out its new ids only, behind the text of the prompt that it goes on from.
import { ID_TEXT_BYTES_MAX } from '../../common/limits.ts';
import { startsWith } from '../domain/bridge.ts';
import type { TokenPrompt } from '../engines/token-call.ts';

export class IdTexts {
  /** Of each session the prompt sent last; the session used last comes last. */
  readonly #last = new Map<string, TokenPrompt>();
  #sizeBytes = 0;

  /** The ids with their text. */
  of(session: string, ids: Int32Array): TokenPrompt {
    const before = this.#last.get(session);
    const known = before !== undefined && startsWith(ids, before.ids) ? before : undefined;
    const prompt = { ids, text: known === undefined ? written(ids) : behind(known, ids) };
    this.#keep(session, prompt);
    return prompt;
  }

  #keep(session: string, prompt: TokenPrompt): void {
    this.#drop(session);
    this.#last.set(session, prompt);
    this.#sizeBytes += prompt.text.length;
    for (const oldest of this.#last.keys()) {
      if (this.#sizeBytes <= ID_TEXT_BYTES_MAX || oldest === session) return;
      this.#drop(oldest);
    }
  }

  #drop(session: string): void {
    this.#sizeBytes -= this.#last.get(session)?.text.length ?? 0;
    this.#last.delete(session);
  }
}

const written = (ids: Int32Array): Buffer => Buffer.from(ids.join(), 'latin1');

function behind({ ids: before, text }: TokenPrompt, ids: Int32Array): Buffer {
  const fresh = ids.subarray(before.length);
  if (fresh.length === 0) return text;
  return Buffer.concat([text, Buffer.from(before.length === 0 ? '' : ','), written(fresh)]);
}
