// The openai-chat dialect: the content of a message.
import { isObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { featuresOf, type Rule } from '../features.ts';
import { detailOf, imageFault } from '../images.ts';

type PartRule = Rule & {
  /** The part as the engine gets it. */
  readonly read?: (part: JsonObject, at: string, faults: Faults) => JsonObject;
};

const PARTS: Readonly<Record<string, PartRule>> = {
  text: {
    support: 'carried',
    how: 'its text and `cache_control`; other members say nothing to a model',
    read: readText,
  },
  image_url: {
    support: 'carried',
    how: 'base64, or at an http or https address where the node has `image_urls`; `detail` above `high` as `high`',
    read: readImage,
  },
  refusal: { support: 'mapped', how: 'to text', read: readRefusal },
  input_audio: { support: 'refused', how: 'audio is not offered' },
  file: { support: 'refused', how: 'files are not offered: send their text' },
};

export const contentFeatures = featuresOf('content', PARTS);

/** A message's content as the engine gets it: the same object where nothing is to be said otherwise. */
export function readContent(content: JsonValue | undefined, at: string, faults: Faults): JsonValue {
  if (content === undefined || content === null || typeof content === 'string') return content ?? null;
  if (!faults.expect(Array.isArray(content), at, 'must be a string or an array of parts')) return null;
  const parts = content as readonly JsonValue[];
  const read = parts.map((part, i) => readPart(part, `${at}[${i}]`, faults));
  return read.every((part, i) => part === parts[i]) ? content : read;
}

function readPart(part: JsonValue, at: string, faults: Faults): JsonValue {
  if (!isObject(part)) {
    faults.add(at, 'must be an object');
    return part;
  }
  const { type } = part;
  const rule = typeof type === 'string' && Object.hasOwn(PARTS, type) ? PARTS[type] : undefined;
  if (rule === undefined) faults.add(`${at}.type`, `must be one of ${Object.keys(PARTS).join(', ')}`);
  else if (rule.read === undefined) faults.add(`${at}.type`, rule.how);
  return rule?.read?.(part, at, faults) ?? part;
}

const TEXT_MEMBERS: ReadonlySet<string> = new Set(['type', 'text', 'cache_control']);

/** What clients keep beside the text, as OpenAI's agents do with annotations, would make another message of it. */
function readText(part: JsonObject, at: string, faults: Faults): JsonObject {
  faults.expect(typeof part['text'] === 'string', `${at}.text`, 'must be a string');
  const members = Object.entries(part).filter(([name]) => TEXT_MEMBERS.has(name));
  return members.length === Object.keys(part).length ? part : Object.fromEntries(members);
}

function readImage(part: JsonObject, at: string, faults: Faults): JsonObject {
  const { image_url: image } = part;
  const url = isObject(image) ? image['url'] : image;
  if (typeof url !== 'string') {
    faults.add(`${at}.image_url.url`, 'must be a string');
    return part;
  }
  const fault = imageFault(url, faults.allowed);
  if (fault !== undefined) faults.add(`${at}.image_url.url`, fault);
  if (!isObject(image)) return { ...part, image_url: { url } };
  const { detail: asked, ...rest } = image;
  const detail = detailOf(asked);
  if (detail === asked) return part;
  return { ...part, image_url: { ...rest, ...(detail !== undefined && { detail }) } };
}

function readRefusal({ refusal }: JsonObject, at: string, faults: Faults): JsonObject {
  faults.expect(typeof refusal === 'string', `${at}.refusal`, 'must be a string');
  return { type: 'text', text: refusal ?? '' };
}
