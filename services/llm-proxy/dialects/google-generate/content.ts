// The google-generate dialect: parts as those of an openai-chat message.
import { arrayOf, isObject, type JsonObject, type JsonValue, textOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { addressFault, dataFault } from '../images.ts';
import { camelCased } from './names.ts';
import { PART_RULES } from './rules.ts';

/** Members that say something about a part. */
export const BESIDE: readonly string[] = ['thought', 'thoughtSignature'];

const imagePart = (url: string): JsonObject => ({ type: 'image_url', image_url: { url } });

/** The parts of a content, their names in camel case. */
export function partsOf(parts: JsonValue | undefined, field: string, faults: Faults): JsonObject[] {
  const ok = Array.isArray(parts) && parts.length > 0 && parts.every(isObject);
  if (!faults.expect(ok, field, 'must be an array of parts, with at least one')) return [];
  return arrayOf(parts).map(camelCased);
}

/** What they say to the model; text alone is a string. */
export function contentOf(parts: readonly JsonObject[], field: string, faults: Faults): JsonValue {
  const [first, ...others] = parts;
  if (others.length === 0 && typeof first?.['text'] === 'string') return first['text'];
  return parts.flatMap((part, i) =>
    typeof part['text'] === 'string'
      ? [{ type: 'text', text: part['text'] }]
      : mediaPart(part, `${field}[${i}]`, faults),
  );
}

/** An image, or a fault. */
export function mediaPart(part: JsonObject, field: string, faults: Faults): JsonObject[] {
  const { inlineData, fileData } = part;
  if (isObject(inlineData)) return inlineImage(camelCased(inlineData), `${field}.inlineData`, faults);
  if (isObject(fileData)) return imageFile(camelCased(fileData), `${field}.fileData`, faults);
  refusePart(part, field, faults);
  return [];
}

function inlineImage({ mimeType, data: given }: JsonObject, field: string, faults: Faults): JsonObject[] {
  const type = textOf(mimeType) ?? '';
  if (!isImage(type, field, faults)) return [];
  const data = typeof given === 'string' ? plainBase64(given) : undefined;
  const fault = data === undefined ? 'must be a string' : dataFault(type, data);
  if (!faults.expect(fault === undefined, `${field}.data`, fault ?? '')) return [];
  return [imagePart(`data:${type};base64,${data}`)];
}

/** As data URLs have it. The API takes base64 for URLs too, which Google's own client for Python writes, also without its end. */
function plainBase64(data: string): string {
  const plain = /[-_]/.test(data) ? data.replaceAll('-', '+').replaceAll('_', '/') : data;
  return plain.padEnd(Math.ceil(plain.length / 4) * 4, '=');
}

function imageFile({ mimeType, fileUri }: JsonObject, field: string, faults: Faults): JsonObject[] {
  if (!isImage(textOf(mimeType) ?? 'image/*', field, faults)) return [];
  const fault = typeof fileUri === 'string' ? addressFault(fileUri, faults.allowed) : 'must be a string';
  if (!faults.expect(fault === undefined, `${field}.fileUri`, fault ?? '')) return [];
  return [imagePart(String(fileUri))];
}

const isImage = (type: string, field: string, faults: Faults): boolean =>
  faults.expect(type.startsWith('image/'), `${field}.mimeType`, 'must be a type of images');

/** Where parts of its kind are not offered at all, or not here. */
export function refusePart(part: JsonObject, field: string, faults: Faults): void {
  const kinds = Object.keys(part).filter((key) => !BESIDE.includes(key));
  const strange = kinds.find((kind) => !Object.hasOwn(PART_RULES, kind));
  const [kind, ...others] = kinds;
  if (strange !== undefined) faults.add(field, `${strange}: ${PART_RULES['anything else']?.how}`);
  else if (kind === undefined || others.length > 0) faults.add(field, 'must hold one kind of data');
  else faults.add(`${field}.${kind}`, 'is not offered in this place, or is no such part');
}
