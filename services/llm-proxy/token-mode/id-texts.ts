// Prompts as text: a turn writes out its new ids only, behind the text of the prompt that it goes on from.
import { ID_TEXT_CHARS_MAX } from '../../common/limits.ts';
import { startsWith } from '../domain/bridge.ts';
import type { TokenPrompt } from '../engines/token-call.ts';

export class IdTexts {
  /** Of each session the prompt sent last; the session used last comes last. */
  readonly #last = new Map<string, TokenPrompt>();
  #chars = 0;

  /** The ids with their text. */
  of(session: string, ids: Int32Array): TokenPrompt {
    const before = this.#last.get(session);
    const known = before !== undefined && startsWith(ids, before.ids) ? before : undefined;
    const fresh = ids.subarray(known?.ids.length ?? 0).join();
    const text = known === undefined || fresh === '' ? `${known?.text ?? ''}${fresh}` : `${known.text},${fresh}`;
    const prompt = { ids, text };
    this.#keep(session, prompt);
    return prompt;
  }

  #keep(session: string, prompt: TokenPrompt): void {
    this.#drop(session);
    this.#last.set(session, prompt);
    this.#chars += prompt.text.length;
    for (const oldest of this.#last.keys()) {
      if (this.#chars <= ID_TEXT_CHARS_MAX || oldest === session) return;
      this.#drop(oldest);
    }
  }

  #drop(session: string): void {
    this.#chars -= this.#last.get(session)?.text.length ?? 0;
    this.#last.delete(session);
  }
}
