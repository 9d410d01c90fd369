// The body of a harness's request: bounded, decoded, parsed.
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib';
import { PolarError } from '../../common/errors.ts';
import { PROXY_BODY_BYTES_MAX } from '../../common/limits.ts';
import { isObject, type JsonObject } from '../domain/json.ts';
import type { KnownBodies } from '../domain/known-bodies.ts';
import type { BodySource } from '../domain/known-body.ts';

const decoders = {
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
} as const;

/** The body, unpacked. Throws BODY_TOO_LARGE, DIALECT_INVALID, CANCELLED when the harness leaves. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  return await decoded(await readBytes(request), request.headers['content-encoding']);
}

/** Throws DIALECT_INVALID. */
export function parseBody(bytes: Buffer): JsonObject {
  return objectIn(() => JSON.parse(bytes.toString('utf8')));
}

export interface ConversationBody {
  /** Parts of it are those of earlier bodies: not to be changed. */
  readonly body: JsonObject;
  /** Where its conversation lies in the bytes. */
  readonly source: BodySource | undefined;
}

/** An attempt's body with a conversation, read as what it adds to those before it. Throws DIALECT_INVALID. */
export function parseConversation(
  bodies: KnownBodies,
  attempt: object,
  bytes: Buffer,
  member: string,
): ConversationBody {
  let source: BodySource | undefined;
  const body = objectIn(() => {
    const known = bodies.read(attempt, bytes, member);
    source = known.source;
    return known.value;
  });
  return { body, source };
}

function objectIn(parse: () => unknown): JsonObject {
  const body = parsed(parse);
  if (!isObject(body)) throw invalid('must be a JSON object');
  return body;
}

function parsed(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    // The parser's message quotes the body.
    throw invalid('must be valid JSON', error);
  }
}

function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  return new Promise((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length;
      if (sizeBytes <= PROXY_BODY_BYTES_MAX) chunks.push(chunk);
      // Somewhat more is read and thrown away, so that the client gets to read the answer.
      else if (sizeBytes > PROXY_BODY_BYTES_MAX * 2) {
        request.pause();
        reject(tooLarge());
      }
    });
    request.once('end', () => {
      if (sizeBytes > PROXY_BODY_BYTES_MAX) reject(tooLarge());
      else resolve(joined(chunks, sizeBytes));
    });
    request.once('close', () => {
      if (!request.complete)
        reject(new PolarError('CANCELLED', 'the harness left while it sent its request'));
    });
  });
}

/** In memory of its own: a view of a larger buffer would hold all of that for as long as the body is kept. */
function joined(chunks: readonly Buffer[], sizeBytes: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(sizeBytes);
  let at = 0;
  for (const chunk of chunks) at += chunk.copy(bytes, at);
  return bytes;
}

async function decoded(bytes: Buffer, encoding: string | undefined): Promise<Buffer> {
  if (encoding === undefined || encoding === 'identity') return bytes;
  const decode = decoders[encoding as keyof typeof decoders];
  if (decode === undefined) throw invalid(`must be in one of ${Object.keys(decoders).join(', ')}`);
  try {
    return await decode(bytes, { maxOutputLength: PROXY_BODY_BYTES_MAX });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw invalid(`is not ${encoding}`, error);
  }
}

const tooLarge = (): PolarError =>
  new PolarError('BODY_TOO_LARGE', `the request body is above ${PROXY_BODY_BYTES_MAX} bytes`);

const invalid = (description: string, cause?: unknown): PolarError =>
  new PolarError('DIALECT_INVALID', `(body): ${description}`, {
    cause,
    fields: [{ field: '(body)', description }],
  });
