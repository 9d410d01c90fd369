// The body of a harness's request: bounded, decoded, parsed.
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib';
import { PolarError } from '../../common/errors.ts';
import { PROXY_BODY_BYTES_MAX } from '../../common/limits.ts';
import { isObject, type JsonObject } from '../domain/json.ts';

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
  const body = parsed(bytes);
  if (!isObject(body)) throw invalid('must be a JSON object');
  return body;
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    // The parser's message quotes the body.
    throw invalid('must be valid JSON', error);
  }
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length;
      if (sizeBytes <= PROXY_BODY_BYTES_MAX) chunks.push(chunk);
      // Somewhat more is read and thrown away, so that the client gets to read the answer.
      else if (sizeBytes > PROXY_BODY_BYTES_MAX * 2) break;
    }
  } catch (error) {
    throw new PolarError('CANCELLED', 'the harness left while it sent its request', { cause: error });
  }
  if (sizeBytes > PROXY_BODY_BYTES_MAX) throw tooLarge();
  return Buffer.concat(chunks);
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
