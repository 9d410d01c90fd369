import { expect } from 'chai';
import { ChunkTidier, tidyReply } from './engine-calls.ts';
import type { JsonObject } from './json.ts';
import { ReplyAssembler } from './reply.ts';

const call = (id: string | undefined, name: string | undefined, args?: unknown, index?: number): JsonObject =>
  JSON.parse(JSON.stringify({ index, id, function: { name, arguments: args } }));
const plain = (id: string, args: string, name = 'f') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});

/** The calls that are put together from these deltas. */
function streamed(...deltas: JsonObject[]): unknown {
  let made = 0;
  const tidier = new ChunkTidier(() => `new${made++}`);
  const assembler = new ReplyAssembler();
  for (const one of deltas) {
    const chunk: JsonObject = { choices: [{ index: 0, delta: { tool_calls: [one] } }] };
    tidier.tidy(chunk);
    assembler.add((chunk as { choices: { delta: JsonObject }[] }).choices[0]!.delta);
  }
  return assembler.message['tool_calls'];
}

function whole(...calls: JsonObject[]): unknown {
  let made = 0;
  const message: JsonObject = { tool_calls: calls };
  tidyReply({ choices: [{ message }] }, () => `new${made++}`);
  return message['tool_calls'];
}

describe('calls as engines tell them', () => {
  it('have a string of arguments, whatever they came as', () => {
    const [a, b, c] = [call('a', 'f', null), call('b', 'f', { x: 1 }), call('c', 'f', '{ }')];
    const expected = [plain('a', ''), plain('b', '{"x":1}'), plain('c', '{ }')];
    expect(whole(a, b, c)).to.deep.equal(expected);
    expect(streamed({ ...a, index: 0 }, { ...b, index: 1 }, { ...c, index: 2 })).to.deep.equal(expected);
    expect(streamed(call('a', 'f', undefined, 0))).to.deep.equal([plain('a', '')]);
  });

  it('have an id, in whole replies and in streams', () => {
    const expected = [plain('new0', '{}'), plain('new1', '{}', 'g')];
    expect(whole(call(undefined, 'f', '{}'), call(undefined, 'g', '{}'))).to.deep.equal(expected);
    expect(streamed(call(undefined, 'f', '{}', 0), call(undefined, 'g', '{}', 1))).to.deep.equal(expected);
    expect(whole(call('a', 'f', '1'), call('a', 'f', '2'))).to.deep.equal([plain('a', '1'), plain('a', '2')]);
  });

  it('are kept apart where the engine has no index for them, one for all, or gaps', () => {
    const expected = [plain('a', '{}'), plain('b', '[]', 'g')];
    const none = [
      call('a', 'f', '{'),
      call(undefined, undefined, '}'),
      call('b', 'g', '['),
      call('b', undefined, ']'),
    ];
    expect(streamed(...none)).to.deep.equal(expected);
    expect(streamed(...none.map((one) => ({ ...one, index: 0 })))).to.deep.equal(expected);
    const [first, second] = [
      (args: string) => call('a', 'f', args, 2),
      (args: string) => call('b', 'g', args, 7),
    ];
    expect(streamed(first('{'), second('['), call(undefined, undefined, '}', 2), second(']'))).to.deep.equal(
      expected,
    );
  });

  it('are named once, though each delta has the name again or an id of its own', () => {
    const expected = [plain('a', '{}', 'find')];
    expect(streamed(call('a', 'find', '{', 0), call('a', 'find', '}', 0))).to.deep.equal(expected);
    expect(streamed(call('a', 'find', '{', 0), call('z', undefined, '}', 0))).to.deep.equal(expected);
    expect(streamed(call('a', 'fi', '{', 0), call(undefined, 'nd', '}', 0))).to.deep.equal(expected);
  });

  it('stand beside a text, and a reply that is whole has ended', () => {
    const choice: JsonObject = { message: { content: [{ type: 'text', text: 'a' }, { text: 'b' }] } };
    tidyReply({ choices: [choice] }, () => '');
    expect(choice).to.deep.equal({ message: { content: 'ab' }, finish_reason: 'stop' });
    for (const content of [5, {}, [{ type: 'image' }]]) {
      const delta = { content };
      const tidy = () => new ChunkTidier(() => '').tidy({ choices: [{ delta }] });
      expect(tidy, JSON.stringify(content)).to.throw('no text');
    }
    expect(() => tidyReply({ choices: [{ message: null }] }, () => '')).to.throw('without a message');
  });
});
