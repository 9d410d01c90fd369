import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import type { JsonObject } from './json.ts';
import { SaidCalls } from './said-calls.ts';

const calling = (...calls: [id: string, text: string][]): JsonObject => ({
  role: 'assistant',
  content: null,
  tool_calls: calls.map(([id, text]) => ({
    id,
    type: 'function',
    function: { name: 'edit', arguments: text },
  })),
});

function said(...replies: JsonObject[]): SaidCalls {
  const calls = new SaidCalls();
  for (const [i, reply] of replies.entries()) {
    const messageBodies = { [`d${i}`]: JSON.stringify(reply) };
    calls.add(create(CompletionSchema, { replyDigest: `d${i}`, messageBodies }));
  }
  return calls;
}

describe('tool calls as the model wrote them', () => {
  const WRITTEN = '{ "path" : "\\u0061.txt",  "n": 1 }';

  it('come back where they were only written otherwise, or got members with defaults', () => {
    const calls = said(calling(['c1', WRITTEN], ['c2', '{}']));
    for (const sent of [
      '{"path":"a.txt","n":1}',
      '{"n":1,"path":"a.txt"}',
      '{"path":"a.txt","n":1,"all":false}',
    ]) {
      const message = calling(['c1', sent], ['c2', '{}']);
      expect(calls.restore(message)).to.deep.equal(calling(['c1', WRITTEN], ['c2', '{}']));
      expect(calls.restore(message)).to.equal(calls.restore(message));
    }
  });

  it('stay as they were sent where they say something else, or nobody said them', () => {
    const calls = said(calling(['c1', WRITTEN], ['c2', 'no json']));
    const others: [string, string][][] = [
      [['c1', WRITTEN]],
      [['c1', '{"path":"b.txt","n":1}']],
      [['c1', '{"path":"a.txt"}']],
      [['c1', 'no json']],
      [['c2', '"no json"']],
      [['c3', '{"path":"a.txt","n":1}']],
    ];
    for (const sent of others) {
      const message = calling(...sent);
      expect(calls.restore(message)).to.equal(message);
    }
    for (const message of [
      { role: 'user', content: 'x' },
      { role: 'assistant', tool_calls: [null, {}] },
    ]) {
      expect(calls.restore(message)).to.equal(message);
    }
  });

  it('are told apart by what they say where an engine gives an id twice', () => {
    const calls = said(
      calling(['c', '{"a": 1}']),
      calling(['c', '{"a": 2}']),
      calling(['c', '{"a": 1, "b": 0}']),
    );
    expect(calls.restore(calling(['c', '{"a":2}']))).to.deep.equal(calling(['c', '{"a": 2}']));
    const unclear = calling(['c', '{"a":1,"b":0,"c":0}']);
    expect(calls.restore(unclear)).to.equal(unclear);
  });
});
