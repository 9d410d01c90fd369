// Requests with one wrong field each, made from the descriptors: an RPC or a field that is added is asked, too.
import { create, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';

/** A request, and the field that is wrong in it. */
export interface WrongRequest {
  readonly field: string;
  readonly what: string;
  readonly request: Message;
}

const STRINGS: readonly [string, string][] = [
  ['empty', ''],
  ['huge', 'x'.repeat(100_000)],
  ['a path', '../../etc/passwd'],
  ['NUL', 'a\0b'],
  ['of NATS', '*.>'],
  ['line ends', 'a\r\nb'],
  ['not ASCII', 'é🦊'],
];
const REALS: readonly [string, number][] = [
  ['NaN', Number.NaN],
  ['infinite', Number.POSITIVE_INFINITY],
  ['negative', -1],
];
const MAX_64 = 2n ** 64n - 1n;
const BIG_BYTES = 100_000;
const MANY = 20_000;

type Value = readonly [what: string, value: unknown];

function scalars(type: ScalarType): readonly Value[] {
  switch (type) {
    case ScalarType.STRING:
      return STRINGS;
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return REALS;
    case ScalarType.BOOL:
      return [['set', true]];
    case ScalarType.BYTES:
      return [['big', new Uint8Array(BIG_BYTES)]];
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return [...([-1, -(2 ** 31), 2 ** 31 - 1].map((n) => [String(n), n]) as Value[])];
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return [['4294967295', 2 ** 32 - 1]];
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return [['18446744073709551615', MAX_64]];
    default:
      return [-1n, -(2n ** 63n), 2n ** 63n - 1n].map((n) => [String(n), n]);
  }
}

const SPANS: readonly (readonly [what: string, parts: { seconds: bigint; nanos: number }])[] = [
  ['negative', { seconds: -1n, nanos: 0 }],
  ['endless', { seconds: 2n ** 62n, nanos: 0 }],
  ['nanos out of range', { seconds: 0n, nanos: -(2 ** 31) }],
];

/** Wrong values of a field that holds one of them, with the path below it. */
function wrongOf(
  field: DescField,
  skip: ReadonlySet<string>,
): { path: string; what: string; value: unknown }[] {
  const of = (values: readonly Value[]) => values.map(([what, value]) => ({ path: '', what, value }));
  const { message, enum: enumeration } = field;
  if (enumeration !== undefined)
    return of([
      ['unknown', 9_999],
      ['negative', -1],
    ]);
  if (message !== undefined) {
    if (skip.has(message.typeName)) return [];
    const known = /^google\.protobuf\.(Duration|Timestamp)$/.test(message.typeName);
    if (known) return of(SPANS.map(([what, value]) => [what, create(message, { ...value })]));
    return wrongIn(message, {}, skip).map(({ field: path, what, request }) => ({
      path,
      what,
      value: request,
    }));
  }
  return of(field.scalar === undefined ? [] : scalars(field.scalar));
}

/** `good`: what the other fields have, as far as the message has them. `skip`: messages that are not gone into. */
export function wrongIn(
  message: DescMessage,
  good: Readonly<Record<string, unknown>>,
  skip: ReadonlySet<string>,
): WrongRequest[] {
  const base = (): Message => {
    const made = create(message) as Message & Record<string, unknown>;
    for (const field of message.fields) {
      if (field.oneof === undefined && field.localName in good) made[field.localName] = good[field.localName];
    }
    return made;
  };
  const found: WrongRequest[] = [];
  for (const field of message.fields) {
    for (const { path, what, value } of wrongOf(field, skip)) {
      const put = (whole: unknown, at = ''): void => {
        const request = base() as Message & Record<string, unknown>;
        if (field.oneof === undefined) request[field.localName] = whole;
        else request[field.oneof.localName] = { case: field.localName, value: whole };
        const name = `${field.name}${at}${path && `.${path}`}`;
        found.push({ field: name, what, request });
      };
      if (field.fieldKind === 'list') put([value], '[0]');
      else if (field.fieldKind === 'map') put({ key: value }, '.key');
      else put(value);
    }
    if (field.fieldKind === 'list' && field.scalar !== undefined) {
      const request = base() as Message & Record<string, unknown>;
      request[field.localName] = new Array(MANY).fill(
        field.scalar === ScalarType.STRING ? 'a' : (scalars(field.scalar)[0]?.[1] ?? 0),
      );
      found.push({ field: field.name, what: `${MANY} of them`, request });
    }
  }
  return found;
}
