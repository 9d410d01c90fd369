// The anthropic-messages dialect: content blocks as parts of an openai-chat message.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { dataFault, imageFault } from '../images.ts';
import { BLOCK_RULES } from './rules.ts';

export const textPart = (text: string): JsonObject => ({ type: 'text', text });
const imagePart = (url: string): JsonObject => ({ type: 'image_url', image_url: { url } });

/** Parts as a message's content: text alone is a string, as it is when the harness writes it as one. */
export function contentOf(parts: readonly JsonObject[]): JsonValue {
  const [part, ...others] = parts;
  if (part === undefined) return '';
  return others.length === 0 && part['type'] === 'text' ? (part['text'] ?? '') : [...parts];
}

/** The blocks of a content, a string being one of text. */
export function blocksOf(content: JsonValue | undefined, field: string, faults: Faults): JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [textPart(content)];
  if (!faults.expect(Array.isArray(content), field, 'must be a string or an array of content blocks'))
    return [];
  const blocks = arrayOf(content);
  for (const [i, block] of blocks.entries()) {
    if (!faults.expect(isObject(block), `${field}[${i}]`, 'must be an object')) return [];
  }
  return blocks as JsonObject[];
}

/** Parts of a block that may stand in user messages and tool results. Of no such block none, with a fault. */
export function partsOf(block: JsonObject, field: string, faults: Faults): JsonObject[] {
  switch (block['type']) {
    case 'text':
      return textsOf([block['text']], `${field}.text`, faults);
    case 'image':
      return imageOf(objectOf(block['source']), `${field}.source`, faults);
    case 'document':
      return documentOf(block, field, faults);
    case 'search_result': {
      const found = arrayOf(block['content']).map((one) => objectOf(one)['text']);
      return textsOf([block['title'], block['source'], ...found], field, faults);
    }
    case 'tool_reference':
      return textsOf([block['tool_name']], `${field}.tool_name`, faults);
    default:
      refuseBlock(block, field, faults);
      return [];
  }
}

export function refuseBlock(block: JsonObject, field: string, faults: Faults): void {
  const type = textOf(block['type']);
  if (type === undefined) faults.add(`${field}.type`, 'must be a string');
  else faults.add(field, `${type}: ${BLOCK_RULES['any other type']?.how}`);
}

/** One text, line by line. */
function textsOf(lines: readonly (JsonValue | undefined)[], field: string, faults: Faults): JsonObject[] {
  const given = lines.filter((line) => line !== undefined && line !== null);
  const ok = given.length > 0 && given.every((line) => typeof line === 'string');
  return faults.expect(ok, field, 'must be a string') ? [textPart(given.join('\n'))] : [];
}

function imageOf(source: JsonObject, field: string, faults: Faults): JsonObject[] {
  const { type, url, media_type: mediaType, data } = source;
  if (type === 'url') {
    const fault = typeof url === 'string' ? imageFault(url, faults.allowed) : 'must be a string';
    return faults.expect(fault === undefined, `${field}.url`, fault ?? '') ? [imagePart(String(url))] : [];
  }
  if (type !== 'base64') {
    faults.add(`${field}.type`, 'must be base64 or url');
    return [];
  }
  const named = textOf(mediaType) ?? '';
  if (!faults.expect(named.startsWith('image/'), `${field}.media_type`, 'must be a type of images'))
    return [];
  const fault = typeof data === 'string' ? dataFault(named, data) : 'must be a string';
  if (!faults.expect(fault === undefined, `${field}.data`, fault ?? '')) return [];
  return [imagePart(`data:${named};base64,${data}`)];
}

function documentOf(block: JsonObject, field: string, faults: Faults): JsonObject[] {
  const { type, data, content } = objectOf(block['source']);
  const head = [block['title'], block['context']];
  if (type === 'text') return textsOf([...head, data ?? false], `${field}.source.data`, faults);
  if (type !== 'content') {
    faults.add(`${field}.source.type`, 'must be text or content: PDF documents and files are not offered');
    return [];
  }
  const inner = `${field}.source.content`;
  const parts = blocksOf(content, inner, faults).flatMap((one, i) => {
    const nested = one['type'] === 'document';
    if (nested) refuseBlock(one, `${inner}[${i}]`, faults);
    return nested ? [] : partsOf(one, `${inner}[${i}]`, faults);
  });
  return head.some((line) => textOf(line) !== undefined)
    ? [...textsOf(head, field, faults), ...parts]
    : parts;
}
