// Images in messages: which a conversation has, and their bytes. A message's body is stored with the first record that names
// it, so that an image is in the records once, however many calls it was sent with.
import type { JsonObject } from '@bufbuild/protobuf';
import { sha256 } from '../../common/ids.ts';
import type { MessageNode } from './message-tree.ts';

/** An image as its message holds it. */
export interface Image {
  /** SHA-256 of its bytes, as lower-case hex; empty where only its address is known. */
  readonly digest: string;
  readonly mediaType: string;
  /** Its address; empty where its bytes are in the message. */
  readonly url: string;
  readonly messageDigest: string;
  /** Place among the content parts. */
  readonly part: number;
  readonly sizeBytes: number;
}

const DATA = /^data:([^;,]*)(?:;[^,]*)?;base64,/i;
/** What a message with an image has in its body. */
const MARK = '"image_url"';

/** The images of an attempt, by the messages that hold them. */
export class Images {
  readonly #byMessage = new Map<string, readonly Image[]>();

  add(bodies: Readonly<Record<string, string>>): void {
    for (const [digest, body] of Object.entries(bodies)) {
      const images = partsOf(body).map(({ url, part }) => imageOf(url, digest, part));
      if (images.length > 0) this.#byMessage.set(digest, images);
    }
  }

  /** Of a conversation, in order. */
  of(messages: MessageNode): Image[] {
    if (this.#byMessage.size === 0) return [];
    return messages.list().flatMap((digest) => this.#byMessage.get(digest) ?? []);
  }
}

/** The bytes of the images in these bodies as JSON lines, each image once; those by address are left out. */
export function* imageLines(bodies: Iterable<string>): Generator<string> {
  const told = new Set<string>();
  for (const { url } of Iterator.from(bodies).flatMap(partsOf)) {
    const [head] = DATA.exec(url) ?? [];
    const { digest, mediaType, sizeBytes } = imageOf(url, '', 0);
    if (head === undefined || told.has(digest)) continue;
    told.add(digest);
    const line: JsonObject = {
      digest,
      media_type: mediaType,
      size_bytes: sizeBytes,
      data: url.slice(head.length),
    };
    yield JSON.stringify(line);
  }
}

function imageOf(url: string, messageDigest: string, part: number): Image {
  const [head, mediaType = ''] = DATA.exec(url) ?? [];
  if (head === undefined) return { digest: '', mediaType: '', url, messageDigest, part, sizeBytes: 0 };
  const bytes = Buffer.from(url.slice(head.length), 'base64');
  return {
    digest: sha256(bytes),
    mediaType: mediaType.toLowerCase(),
    url: '',
    messageDigest,
    part,
    sizeBytes: bytes.byteLength,
  };
}

/** The addresses of a message's images. */
function partsOf(body: string): { readonly url: string; readonly part: number }[] {
  if (!body.includes(MARK)) return [];
  return contentOf(body).flatMap((one, part) => {
    const url = one?.type === 'image_url' ? one.image_url?.url : undefined;
    return typeof url === 'string' ? [{ url, part }] : [];
  });
}

type ContentPart = { readonly type?: unknown; readonly image_url?: { readonly url?: unknown } } | null;

function contentOf(body: string): readonly ContentPart[] {
  try {
    const { content } = JSON.parse(body) as { content?: unknown };
    return Array.isArray(content) ? content : [];
  } catch {
    return [];
  }
}
