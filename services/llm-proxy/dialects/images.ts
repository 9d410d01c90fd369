// Images in requests: by address, or inside as base64.
import type { JsonValue } from '../domain/json.ts';
import type { Allowed } from './faults.ts';

/** What an image's data begins with, by media type, as base64. Types that are not here are left to the engine. */
const BEGINNINGS: Readonly<Record<string, RegExp>> = {
  'image/png': /^iVBORw0KGg/,
  'image/jpeg': /^\/9j\//,
  'image/gif': /^R0lGOD/,
  'image/webp': /^UklGR/,
};
const DATA = /^data:(image\/[\w.+-]+);base64,/i;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** What is wrong with the address of an image; undefined: nothing. */
export function imageFault(url: string, allowed: Allowed): string | undefined {
  if (!url.startsWith('data:')) return addressFault(url, allowed);
  const [head, type = ''] = DATA.exec(url) ?? [];
  if (head === undefined) return 'must begin with data:image/<type>;base64,';
  return dataFault(type.toLowerCase(), url.slice(head.length));
}

/** The engine would fetch it: from wherever that gets, which a sandbox need not. */
export function addressFault(url: string, { imageUrls }: Allowed): string | undefined {
  if (!imageUrls) return 'must be the data of an image: this node takes none by address (image_urls)';
  const ok = /^https?:\/\//i.test(url) && URL.canParse(url);
  return ok ? undefined : 'must be an http, https or data URL of an image';
}

/** What is wrong with an image's base64. */
export function dataFault(mediaType: string, data: string): string | undefined {
  if (data.length % 4 !== 0 || !BASE64.test(data)) return 'must hold valid base64';
  const beginning = BEGINNINGS[mediaType];
  return beginning === undefined || beginning.test(data) ? undefined : `holds no ${mediaType}`;
}

/** How closely engines can be asked to look at an image. */
const DETAILS = ['auto', 'low', 'high'];

/** Engines refuse a word that is newer than they are; `original` is one. Unset: nothing is asked for. */
export function detailOf(asked: JsonValue | undefined): string | undefined {
  if (typeof asked !== 'string') return undefined;
  return DETAILS.includes(asked) ? asked : 'high';
}
