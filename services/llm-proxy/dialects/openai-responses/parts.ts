// The openai-responses dialect: parts of content, in the words of openai-chat.
import { isObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { featuresOf, type Rule } from '../features.ts';
import { detailOf, imageFault } from '../images.ts';

type PartRule = Rule & { readonly read?: (part: JsonObject, at: string, faults: Faults) => JsonObject };

const textPart = (key: string) => (part: JsonObject, at: string, faults: Faults) => {
  const { [key]: text } = part;
  faults.expect(typeof text === 'string', `${at}.${key}`, 'must be a string');
  return { type: 'text', text: text ?? '' };
};

const PARTS: Readonly<Record<string, PartRule>> = {
  input_text: { support: 'mapped', how: 'to text', read: textPart('text') },
  output_text: { support: 'mapped', how: 'to text', read: textPart('text') },
  refusal: { support: 'mapped', how: 'to text', read: textPart('refusal') },
  input_image: {
    support: 'mapped',
    how: 'to image_url; base64, or at an http or https address where the node has `image_urls`; `detail` above `high` as `high`',
    read: readImage,
  },
  input_file: { support: 'refused', how: 'files are not offered: send their text' },
  input_audio: { support: 'refused', how: 'audio is not offered' },
};

export const contentFeatures = featuresOf('content', PARTS);

/** Content as openai-chat has it: one text alone is a string. */
export function readContent(content: JsonValue | undefined, at: string, faults: Faults): JsonValue {
  if (typeof content === 'string') return content;
  if (!faults.expect(Array.isArray(content), at, 'must be a string or an array of parts')) return null;
  const parts = (content as readonly JsonValue[]).map((part, i) => readPart(part, `${at}[${i}]`, faults));
  const [first, ...others] = parts;
  return others.length === 0 && first?.['type'] === 'text' ? (first['text'] ?? '') : parts;
}

function readPart(part: JsonValue, at: string, faults: Faults): JsonObject {
  if (!isObject(part)) {
    faults.add(at, 'must be an object');
    return {};
  }
  const { type } = part;
  const rule = typeof type === 'string' && Object.hasOwn(PARTS, type) ? PARTS[type] : undefined;
  if (rule === undefined) faults.add(`${at}.type`, `must be one of ${Object.keys(PARTS).join(', ')}`);
  else if (rule.read === undefined) faults.add(`${at}.type`, rule.how);
  return rule?.read?.(part, at, faults) ?? {};
}

function readImage({ image_url: url, detail: asked }: JsonObject, at: string, faults: Faults): JsonObject {
  if (typeof url !== 'string') {
    faults.add(`${at}.image_url`, 'must be a string; files are not stored here');
    return {};
  }
  const fault = imageFault(url, faults.allowed);
  if (fault !== undefined) faults.add(`${at}.image_url`, fault);
  const detail = detailOf(asked);
  return { type: 'image_url', image_url: { url, ...(detail !== undefined && { detail }) } };
}
