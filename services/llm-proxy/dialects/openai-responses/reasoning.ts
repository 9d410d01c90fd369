// The openai-responses dialect: reasoning that has gone to a harness and comes back.
import { arrayOf, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { openReasoning } from '../sealed-reasoning.ts';

/** The text of a reasoning item: the sealed one, as it is the very text whatever a harness keeps of the rest. */
export function readReasoning(item: JsonObject, at: string, faults: Faults): string {
  const { encrypted_content: content } = item;
  const sealed = typeof content === 'string' ? openReasoning(content) : undefined;
  const text = sealed ?? textsOf(item['content']) ?? textsOf(item['summary']);
  if (text === undefined && textOf(content) !== undefined) {
    faults.add(`${at}.encrypted_content`, 'was not written here, and there is no text beside it');
  }
  return text ?? '';
}

function textsOf(parts: unknown): string | undefined {
  const texts = arrayOf(parts).map((part) => textOf(objectOf(part)['text']) ?? '');
  return texts.length === 0 ? undefined : texts.join('\n\n');
}
