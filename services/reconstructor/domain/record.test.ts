import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { packFloats, packIds } from '../../common/columns.ts';
import { readRecord } from './record.ts';

const full = create(CompletionSchema, {
  callId: 'ä-call',
  index: 300,
  startSeq: 2n ** 40n,
  endSeq: 2n ** 63n,
  baseIndex: -1,
  baseLength: 70_000,
  promptSuffixIds: packIds([1, 2]),
  promptLength: 2,
  sampledIds: packIds([3]),
  logprobs: packFloats([-0.5]),
  finishReason: 'stop',
  model: 'policy',
  engine: 'sglang',
  policyVersion: 7n,
  weightVersion: 'seven',
  trainable: true,
  role: 'sub',
  messageDigests: ['a', 'b', 'c'],
  replyDigest: 'd',
  messageBodies: { a: '{"content":"ü"}', '': '' },
  sampling: { temperature: 1, stop: ['x'] },
  usage: { promptTokens: 2, completionTokens: 1, cachedTokens: 9 },
  times: { startMs: 5n, totalMs: 3 },
  baseMessageCount: 4,
  policySpans: [{ policyVersion: 7n, weightVersion: 'seven', start: 0, end: 1 }],
  noTokenIds: true,
  routedExperts: { rows: Uint8Array.of(1, 2), first: 1, layers: 1, topK: 2, itemBytes: 1 },
  routedExpertsFault: 'too_large',
});

describe('a record as the builders read it', () => {
  it('has of each field what the protobuf library reads', () => {
    for (const message of [full, create(CompletionSchema)]) {
      const read = readRecord(toBinary(CompletionSchema, message));
      for (const [name, value] of Object.entries(read)) {
        const known = message[name as keyof typeof read];
        if (name === 'usage') expect(value?.completionTokens).to.equal(message.usage?.completionTokens);
        else expect(value, name).to.deep.equal(known);
      }
    }
    expect(Object.keys(readRecord(new Uint8Array()))).to.have.length(24);
  });

  it('has texts of any length and letters', () => {
    for (const callId of [
      'a',
      'x'.repeat(32),
      'x'.repeat(33),
      'ü'.repeat(16),
      'é',
      '\u{1f600}',
      '\ufeffbom',
    ]) {
      const stored = toBinary(CompletionSchema, create(CompletionSchema, { callId, replyDigest: 'd' }));
      const { replyDigest, ...read } = readRecord(stored);
      expect([read.callId, replyDigest]).to.deep.equal([callId, 'd']);
    }
  });

  it('shares nothing with another that was read', () => {
    const stored = toBinary(CompletionSchema, full);
    const [first, second] = [readRecord(stored), readRecord(stored)];
    expect([first.policySpans.length, second.policySpans.length]).to.deep.equal([1, 1]);
    expect(Object.keys(readRecord(new Uint8Array()).messageBodies)).to.deep.equal([]);
    expect(readRecord(new Uint8Array()).policySpans).to.deep.equal([]);
  });

  it('is refused where the bytes are torn, or a text is none', () => {
    expect(() => readRecord(Uint8Array.of(0x0a, 1, 0xff))).to.throw();
    expect(() => readRecord(Uint8Array.of(0x6a, 9, 1))).to.throw(RangeError);
    expect(() => readRecord(Uint8Array.of(0x3a, 9, 1))).to.throw(RangeError);
    expect(() => readRecord(new Uint8Array(64)), 'of a field 0').to.throw(RangeError);
  });
});
