// The limit of values in a request: it is refused by its bytes, before anything is made of them.
import type { DescMessage } from '@bufbuild/protobuf';
import {
  type Compression,
  compressedFlag,
  encodeEnvelope,
  pipe,
  readAllBytes,
  transformSplitEnvelope,
  type UniversalHandler,
  type UniversalServerRequest,
} from '@connectrpc/connect/protocol';
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';
import { PolarError, toConnectError } from './errors.ts';
import { RPC_BODY_BYTES_MAX } from './limits.ts';
import { binaryValues, jsonValues } from './request-values.ts';

/** Values of one request, be they fields of its binary form; above: INVALID_REQUEST. */
export const REQUEST_VALUES_MAX = 500_000;

/** What Connect unpacks. */
const COMPRESSIONS = [compressionGzip, compressionBrotli];
const ENCODINGS = ['content-encoding', 'grpc-encoding', 'connect-content-encoding'];

/** The same handler, for requests of up to REQUEST_VALUES_MAX values. */
export function withValuesLimit(handler: UniversalHandler): UniversalHandler {
  const { input } = handler.method;
  return Object.assign(
    (request: UniversalServerRequest) => handler({ ...request, body: limited(request, input) }),
    handler,
  );
}

function limited(
  { header, body }: UniversalServerRequest,
  input: DescMessage,
): UniversalServerRequest['body'] {
  if (typeof body !== 'object' || body === null || !(Symbol.asyncIterator in body)) return body;
  const names = ENCODINGS.flatMap((one) => header.get(one) ?? []);
  const packed = COMPRESSIONS.find(({ name }) => names.includes(name));
  const type = header.get('content-type') ?? '';
  const length = header.get('content-length');
  if (packed === undefined && length !== null && Number(length) <= REQUEST_VALUES_MAX) return body;
  const count = /[/+]json/i.test(type) ? jsonValues : binaryValues.bind(undefined, input);
  return /^application\/(grpc|connect\+)/i.test(type)
    ? enveloped(body, { packed, count })
    : whole(body, length, { packed, count });
}

interface Look {
  /** How the bytes may be packed. */
  readonly packed: Compression | undefined;
  readonly count: (bytes: Uint8Array, max: number) => number;
}

async function* whole(
  body: AsyncIterable<Uint8Array>,
  length: string | null,
  look: Look,
): AsyncIterable<Uint8Array> {
  const bytes = await readAllBytes(body, RPC_BODY_BYTES_MAX, length);
  await check(bytes, look);
  yield bytes;
}

async function* enveloped(body: AsyncIterable<Uint8Array>, look: Look): AsyncIterable<Uint8Array> {
  for await (const { flags, data } of pipe(body, transformSplitEnvelope(RPC_BODY_BYTES_MAX))) {
    const packed = (flags & compressedFlag) === 0 ? undefined : look.packed;
    await check(data, { ...look, packed });
    yield encodeEnvelope(flags, data);
  }
}

/** Throws INVALID_REQUEST. What cannot be unpacked or read at all is left to those who read it. */
async function check(bytes: Uint8Array, { packed, count }: Look): Promise<void> {
  let values = 0;
  try {
    const plain = (await packed?.decompress(bytes, RPC_BODY_BYTES_MAX)) ?? bytes;
    // Each takes a byte.
    if (plain.byteLength > REQUEST_VALUES_MAX) values = count(plain, REQUEST_VALUES_MAX);
  } catch {
    return;
  }
  if (values <= REQUEST_VALUES_MAX) return;
  const message = `the request holds more than REQUEST_VALUES_MAX (${REQUEST_VALUES_MAX}) values`;
  throw toConnectError(new PolarError('INVALID_REQUEST', message));
}
