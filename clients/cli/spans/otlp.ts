// Spans in the JSON form of OTLP: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
import { sha256 } from '../../../services/common/ids.ts';

type Plain = string | number | boolean | readonly string[] | Double;
/** By key; what is undefined is left out. */
export type Attributes = Readonly<Record<string, Plain | undefined>>;

interface Double {
  readonly doubleValue: number;
}

/** Of what may have a fraction: a key whose values are now of one type, now of another, is two keys to many a store. */
export const double = (value: number | undefined): Double | undefined =>
  value === undefined ? undefined : { doubleValue: value };

/** Kinds of OTLP: what happens in the mesh, and what it asks of somebody else. */
export const KIND = { internal: 1, client: 3 } as const;
const ERROR = 2;

/** Times are Unix milliseconds. */
export interface SpanInit {
  /** What tells it from all others of its session. */
  readonly key: string;
  /** Key of the span that it is a part of; undefined: it is the whole. */
  readonly parent?: string;
  readonly name: string;
  readonly kind?: (typeof KIND)[keyof typeof KIND];
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes?: Attributes;
  readonly events?: readonly { readonly name: string; readonly atMs: number }[];
  /** Why it failed; undefined where it did not. */
  readonly error?: string | undefined;
}

/** As OTLP has it. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
}

const [TRACE_ID_CHARS, SPAN_ID_CHARS] = [32, 16];

/** Ids are made of the session's, so that a span which is sent again is the same. */
export function spanOf(sessionId: string, init: SpanInit): Span {
  const idOf = (key: string): string => sha256(`${sessionId}/${key}`).slice(0, SPAN_ID_CHARS);
  return {
    traceId: sha256(sessionId).slice(0, TRACE_ID_CHARS),
    spanId: idOf(init.key),
    ...(init.parent !== undefined && { parentSpanId: idOf(init.parent) }),
    name: init.name,
    ...{
      kind: init.kind ?? KIND.internal,
      startTimeUnixNano: nanos(init.startMs),
      // A clock that was set back in between.
      endTimeUnixNano: nanos(Math.max(init.startMs, init.endMs)),
      attributes: attributesOf(init.attributes ?? {}),
      events: (init.events ?? []).map(({ name, atMs }) => ({ name, timeUnixNano: nanos(atMs) })),
      status: init.error === undefined ? {} : { code: ERROR, message: init.error },
    },
  };
}

/** A request of ExportTraceService, and a line of what collectors read from files. */
export const exportRequest = (spans: readonly Span[], version: string): object => ({
  resourceSpans: [
    {
      resource: { attributes: attributesOf({ 'service.name': 'polar-mesh', 'service.version': version }) },
      scopeSpans: [{ scope: { name: 'polar-mesh', version }, spans }],
    },
  ],
});

const nanos = (ms: number): string => `${BigInt(Math.round(ms)) * 1_000_000n}`;

const attributesOf = (attributes: Attributes): object[] =>
  Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : { key, value: anyValue(value) },
  );

function anyValue(value: Plain): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') {
    return { intValue: `${value}` };
  }
  if ('doubleValue' in value) return value;
  return { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } };
}
