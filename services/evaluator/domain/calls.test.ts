import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Completion, CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { callLines, wholeRecords } from './calls.ts';

const record = (index: number, more: object = {}): Completion =>
  create(CompletionSchema, { callId: `c${index}`, index, baseIndex: -1, ...more });

describe("a session's calls as a command gets them", () => {
  it('tell what each call adds to the conversation, and its reply', () => {
    const records = [
      record(0, {
        messageDigests: ['s', 'u'],
        replyDigest: 'r',
        messageBodies: { s: '{"role":"system"}', u: '"u"', r: '"r"' },
      }),
      record(1, {
        ...{
          role: 'sub',
          baseIndex: 0,
          baseMessageCount: 3,
          messageDigests: ['v', 's'],
          messageBodies: { v: '"v"' },
        },
        ...{ finishReason: 'stop', sampledIds: new Uint8Array(8), startSeq: 4n, endSeq: 5n },
      }),
    ];
    const [first, second] = callLines(records).map((line) => JSON.parse(line));
    expect(first).to.deep.include({ call_id: 'c0', role: 'main', base_call_id: null, base_messages: 0 });
    expect([first.messages, first.reply]).to.deep.equal([[{ role: 'system' }, 'u'], 'r']);
    expect(second).to.deep.include({ role: 'sub', base_call_id: 'c0', base_messages: 3, sampled_tokens: 2 });
    expect([second.messages, second.reply]).to.deep.equal([['v', { role: 'system' }], null]);
  });

  it('count what an engine without ids sampled by its own word', () => {
    const [line = ''] = callLines([record(0, { noTokenIds: true, usage: { completionTokens: 7 } })]);
    expect(JSON.parse(line)).to.include({ sampled_tokens: 7, reply: null });
  });

  it('are whole or none, each once and in order', () => {
    const [a, b] = [record(0), record(1)];
    expect(wholeRecords([b, a, b], 2)).to.deep.equal([a, b]);
    expect(wholeRecords([b], 2)).to.equal(undefined);
    expect(wholeRecords([], 0)).to.deep.equal([]);
  });
});
