// What no request may hold, whatever it asks for, found by the descriptors: proto3 reads any number into an enum, and spans
// and instants that are none. Specs of tasks have checks of their own, which name all faults at once.
import {
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import type { Interceptor } from '@connectrpc/connect';
import { PolarError } from './errors.ts';

type Check = (value: unknown) => string | undefined;
/** Adds what is wrong in a message, by path. */
type Look = (message: Message, path: string, found: [field: string, description: string][]) => void;

const SPECS = 'polar.common.v1.';
/** What proto says of a duration and of a timestamp. */
const SPAN_S_MAX = 315_576_000_000n;
const [FIRST_S, LAST_S] = [-62_135_596_800n, 253_402_300_799n];
const NANOS_MAX = 999_999_999;

interface Parts {
  readonly seconds: bigint;
  readonly nanos: number;
}

const WELL_KNOWN: Readonly<Record<string, Check>> = {
  'google.protobuf.Duration': (value) => {
    const { seconds, nanos } = value as Parts;
    const sameSign = seconds === 0n || nanos === 0 || seconds > 0n === nanos > 0;
    const good = seconds >= -SPAN_S_MAX && seconds <= SPAN_S_MAX && Math.abs(nanos) <= NANOS_MAX && sameSign;
    return good ? undefined : 'must be a duration';
  },
  'google.protobuf.Timestamp': (value) => {
    const { seconds, nanos } = value as Parts;
    const good = seconds >= FIRST_S && seconds <= LAST_S && nanos >= 0 && nanos <= NANOS_MAX;
    return good ? undefined : 'must be an instant of the years 1 to 9999';
  },
};

const looks = new Map<string, Look | undefined>();

/** Undefined where nothing can be wrong. */
function lookOf(message: DescMessage): Look | undefined {
  if (looks.has(message.typeName)) return looks.get(message.typeName);
  // A message may hold itself.
  looks.set(message.typeName, undefined);
  const inside = message.fields.flatMap((field) => lookAt(field) ?? []);
  const look: Look = (one, path, found) => {
    for (const of of inside) of(one, path, found);
  };
  if (inside.length > 0) looks.set(message.typeName, look);
  return looks.get(message.typeName);
}

function lookAt(field: DescField): Look | undefined {
  const check = checkOf(field);
  const below =
    field.message === undefined || field.message.typeName.startsWith(SPECS)
      ? undefined
      : lookOf(field.message);
  if (check === undefined && below === undefined) return undefined;
  return (message, path, found) => {
    const at = `${path}${field.name}`;
    for (const [where, value] of valuesAt(message, field, at)) {
      const fault = check?.(value);
      if (fault !== undefined) found.push([where, fault]);
      else below?.(value as Message, `${where}.`, found);
    }
  };
}

function checkOf({ enum: values, message, scalar }: DescField): Check | undefined {
  if (values !== undefined) {
    const names = values.values.slice(1).map(({ localName }) => localName.toLowerCase());
    return (value) =>
      values.value[value as number] === undefined ? `must be one of ${names.join(', ')}` : undefined;
  }
  if (scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT) {
    return (value) => (Number.isFinite(value) ? undefined : 'must be a finite number');
  }
  return message && WELL_KNOWN[message.typeName];
}

/** The values of a field that are set, each with its place. */
export function valuesAt(message: Message, field: DescField, at: string): (readonly [string, unknown])[] {
  const fields = message as unknown as Record<string, unknown>;
  if (field.oneof !== undefined) {
    const chosen = fields[field.oneof.localName] as { case?: string; value?: unknown };
    return chosen.case === field.localName ? [[at, chosen.value]] : [];
  }
  const value = fields[field.localName];
  if (value === undefined) return [];
  if (field.fieldKind === 'list') return (value as unknown[]).map((one, i) => [`${at}[${i}]`, one]);
  if (field.fieldKind === 'map') {
    return Object.entries(value as object).map(([key, one]) => [`${at}.${key}`, one]);
  }
  return [[at, value]];
}

/** Throws INVALID_REQUEST with every fault. */
export function checkRequest(schema: DescMessage, request: Message): void {
  const found: [string, string][] = [];
  lookOf(schema)?.(request, '', found);
  if (found.length === 0) return;
  throw new PolarError(
    'INVALID_REQUEST',
    found.map(([field, description]) => `${field} ${description}`).join('; '),
    { fields: found.map(([field, description]) => ({ field, description })) },
  );
}

/** A request of a byte stream, before which no interceptor stands. Throws INVALID_REQUEST. */
export function readRequest<T extends DescMessage>(schema: T, bytes: Uint8Array): MessageShape<T> {
  let request: MessageShape<T>;
  try {
    request = fromBinary(schema, bytes);
  } catch (error) {
    throw new PolarError('INVALID_REQUEST', `the request cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
  checkRequest(schema, request);
  return request;
}

/** Of a server: no handler sees what no request may hold. */
export const refuseFaulty: Interceptor = (next) => async (request) => {
  const { input } = request.method;
  if (!request.stream) {
    checkRequest(input, request.message);
    return await next(request);
  }
  return await next(
    lookOf(input) === undefined ? request : { ...request, message: checked(input, request.message) },
  );
};

async function* checked<T extends Message>(
  schema: DescMessage,
  messages: AsyncIterable<T>,
): AsyncIterable<T> {
  for await (const message of messages) {
    checkRequest(schema, message);
    yield message;
  }
}
