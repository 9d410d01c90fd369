import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { completionOf } from './completion.ts';

describe('records as they are made here', () => {
  it('have every field that the schema has', () => {
    const made = Object.keys(completionOf({})).filter((name) => name !== '$typeName');
    expect(made).to.have.members(CompletionSchema.fields.map(({ localName }) => localName));
    expect(completionOf({}).$typeName).to.equal(CompletionSchema.typeName);
  });

  it('are stored as those that the protobuf runtime makes', () => {
    const said = {
      callId: 'c',
      endSeq: 7n,
      logprobs: new Uint8Array([1]),
      messageBodies: { a: 'b' },
      policySpans: [{ weightVersion: '8', end: 2 }],
      sampling: { top_p: 1, stop: ['x'] },
      usage: { promptTokens: 3 },
      times: { startMs: 5n, totalMs: 2 },
    };
    const bytes = toBinary(CompletionSchema, completionOf(said));
    expect(bytes).to.deep.equal(toBinary(CompletionSchema, create(CompletionSchema, said)));
    expect(fromBinary(CompletionSchema, bytes)).to.deep.include({
      callId: 'c',
      usage: create(CompletionSchema, said).usage,
    });
    expect(toBinary(CompletionSchema, completionOf({}))).to.have.length(0);
  });
});
