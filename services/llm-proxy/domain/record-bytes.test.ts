import { create, type DescField, type DescMessage, ScalarType, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { type CompletionFields, completionOf } from './completion.ts';
import { recordBytes } from './record-bytes.ts';

/** Says something in every field, also in those that a later schema has. */
function filled(schema: DescMessage): Record<string, unknown> {
  return Object.fromEntries(schema.fields.map((field) => [field.localName, sayingOf(field)]));
}

function sayingOf(field: DescField): unknown {
  if (field.fieldKind === 'map') return { a: 'b', '': 'ü'.repeat(70) };
  if (field.fieldKind === 'list') return field.message ? [filled(field.message), {}] : ['one', ''];
  if (field.message?.typeName === 'google.protobuf.Struct') return STRUCT;
  return field.message ? filled(field.message) : SCALARS[field.scalar as ScalarType];
}

const STRUCT = {
  top_p: 0.1,
  seed: -3,
  none: null,
  on: true,
  off: false,
  stop: ['x', ['y'], {}],
  response_format: { type: 'json_schema', json_schema: { schema: {}, long: 'é'.repeat(100) } },
};

const SCALARS: Partial<Record<ScalarType, unknown>> = {
  [ScalarType.STRING]: 'wörter '.repeat(40),
  [ScalarType.UINT32]: 2 ** 32 - 1,
  [ScalarType.INT32]: -1,
  [ScalarType.UINT64]: 2n ** 64n - 1n,
  [ScalarType.BYTES]: Uint8Array.from({ length: 300 }, (_, i) => i),
  [ScalarType.BOOL]: true,
};

describe('the bytes of a record', () => {
  const same = (fields: object): void => {
    const record = create(CompletionSchema, fields);
    expect(Buffer.from(recordBytes(completionOf(record as CompletionFields)))).to.deep.equal(
      Buffer.from(toBinary(CompletionSchema, record)),
    );
  };

  it('are those of the protobuf runtime, with every field and with none', () => {
    same(filled(CompletionSchema));
    same({});
  });

  it('are those of the protobuf runtime for what is there and empty', () => {
    same({
      logprobs: new Uint8Array(),
      sampling: {},
      usage: {},
      times: {},
      routedExperts: {},
      policySpans: [{}],
    });
  });

  it('are of one record alone, after a large one and one that cannot be written', () => {
    same({ callId: 'x'.repeat(3_000_000) });
    expect(() => recordBytes(completionOf({ callId: 'a', index: -1 }))).to.throw('uint32');
    same({ callId: 'b' });
  });

  it('stay as they are when the next record is written', () => {
    const bytes = recordBytes(completionOf({ callId: 'first' }));
    recordBytes(completionOf({ callId: 'other' }));
    expect(Buffer.from(bytes).toString()).to.contain('first');
  });
});
