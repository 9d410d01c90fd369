// The body of a harness's request: bounded, decoded, parsed.
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib';
import { PolarError } from '../../common/errors.ts';
import { PROXY_BODY_BYTES_MAX } from '../../common/limits.ts';
import { ArrivingBody } from '../domain/arriving-body.ts';
import { Bytes } from '../domain/bytes.ts';
import { isObject, type JsonObject } from '../domain/json.ts';
import { hasMoreMarks } from '../domain/json-marks.ts';
import type { KnownBodies } from '../domain/known-bodies.ts';
import { parseBody as bodyIn, type ReadBody } from '../domain/known-body.ts';

/** JSON values of a body, as its commas and opening brackets tell; above: 413. All of them take 50 MiB or so. */
const PROXY_BODY_VALUES_MAX = 500_000;
/** Bodies up to here are not looked through for them: they cannot have many more. */
const VALUES_UNCOUNTED_BYTES_MAX = 2 * 1024 * 1024;

const decoders = {
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
} as const;

/**
 * The body, unpacked, until it is parsed; `known` is what it may begin as. Throws BODY_TOO_LARGE, DIALECT_INVALID, CANCELLED
 * when the harness leaves.
 */
export async function readBody(request: IncomingMessage, known: readonly Bytes[] = []): Promise<Bytes> {
  const encoding = request.headers['content-encoding'];
  const came = await readBytes(request, new ArrivingBody(encoding === undefined ? known : []));
  const bytes = encoding === undefined ? came : await decoded(came, encoding);
  if (bytes.length > VALUES_UNCOUNTED_BYTES_MAX && hasMoreMarks(bytes, PROXY_BODY_VALUES_MAX)) {
    throw tooLarge(`the request body has more than ${PROXY_BODY_VALUES_MAX} JSON values`);
  }
  return bytes;
}

/** What `came` is gone. Throws DIALECT_INVALID. */
export function parseBody(came: Bytes): JsonObject {
  try {
    return asObject(parsed(() => bodyIn(came.text())));
  } finally {
    giveBack(came);
  }
}

export interface ConversationBody {
  /** Parts of it are those of earlier bodies: not to be changed. */
  readonly value: JsonObject;
  readonly read: ReadBody;
}

/** An attempt's body with a conversation, read as what it adds to those before it. What `came` is gone. Throws DIALECT_INVALID. */
export function parseConversation(
  bodies: KnownBodies,
  attempt: object,
  came: Bytes,
  member: string,
): ConversationBody {
  try {
    const read = parsed(() => bodies.read(attempt, came, member));
    return { value: asObject(read.body.value), read };
  } finally {
    giveBack(came);
  }
}

/** Below, a piece is left to the next small collection. */
const GIVEN_BACK_BYTES_MIN = 16 * 1024;

/**
 * Nobody looks at it any more. Left to itself, memory outside of V8's heap brings on a collection of the whole heap each
 * 64 MiB: with long requests those cost more than the requests, and all calls wait for them.
 */
export function giveBack({ pieces, lent }: Bytes): void {
  for (let i = lent; i < pieces.length; i++) givePieceBack(pieces[i] as Buffer);
}

function givePieceBack({ buffer, byteLength }: Buffer): void {
  const own = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  if (own && byteLength >= GIVEN_BACK_BYTES_MIN) buffer.transfer(0);
}

function asObject(value: unknown): JsonObject {
  if (!isObject(value)) throw invalid('must be a JSON object');
  return value;
}

function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    // The parser's message quotes the body.
    throw invalid('must be valid JSON', error);
  }
}

function readBytes(request: IncomingMessage, arriving: ArrivingBody): Promise<Bytes> {
  let sizeBytes = 0;
  return new Promise((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length;
      if (sizeBytes <= PROXY_BODY_BYTES_MAX) {
        if (!arriving.add(chunk)) givePieceBack(chunk);
      }
      // Somewhat more is read and thrown away, so that the client gets to read the answer.
      else if (sizeBytes > PROXY_BODY_BYTES_MAX * 2) {
        request.pause();
        reject(tooLarge());
      }
    });
    const left = (): void =>
      reject(new PolarError('CANCELLED', 'the harness left while it sent its request'));
    request.once('end', () => {
      // Over HTTP/2 a request that broke off ends as well, and says that it is complete.
      if (request.aborted) left();
      else if (sizeBytes > PROXY_BODY_BYTES_MAX) reject(tooLarge());
      else resolve(arriving.whole());
    });
    request.once('close', () => {
      if (!request.complete || request.aborted) left();
    });
  });
}

/** Codings that one body may have had, one on the other. */
const CODINGS_MAX = 2;

async function decoded(came: Bytes, encoding: string): Promise<Bytes> {
  const codings = codingsIn(encoding);
  if (codings.length > CODINGS_MAX) throw invalid(`must have at most ${CODINGS_MAX} content codings`);
  let bytes = came;
  for (const coding of codings) bytes = await unpacked(bytes, coding);
  return bytes;
}

/** The last one that was put on first. */
function codingsIn(encoding: string): string[] {
  const words = encoding.toLowerCase().split(',');
  const codings = words.map((word) => word.trim().replace(/^x-/, ''));
  return codings.filter((coding) => coding !== '' && coding !== 'identity').reverse();
}

async function unpacked(came: Bytes, coding: string): Promise<Bytes> {
  const decode = Object.hasOwn(decoders, coding) ? decoders[coding as keyof typeof decoders] : undefined;
  if (decode === undefined) throw invalid(`must be in one of ${Object.keys(decoders).join(', ')}`);
  try {
    return new Bytes([await decode(came.copy(), { maxOutputLength: PROXY_BODY_BYTES_MAX })]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw invalid(`is not ${coding}`, error);
  }
}

const tooLarge = (message = `the request body is above ${PROXY_BODY_BYTES_MAX} bytes`): PolarError =>
  new PolarError('BODY_TOO_LARGE', message);

const invalid = (description: string, cause?: unknown): PolarError =>
  new PolarError('DIALECT_INVALID', `(body): ${description}`, {
    cause,
    fields: [{ field: '(body)', description }],
  });
