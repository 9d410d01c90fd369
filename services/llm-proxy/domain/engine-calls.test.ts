import { expect } from 'chai';
import { ChunkTidier, tidyReply } from './engine-calls.ts';
import { type JsonObject, objectOf } from './json.ts';
import { ReplyAssembler } from './reply.ts';

const call = (id: string | undefined, name: string | undefined, args?: unknown, index?: number): JsonObject =>
  JSON.parse(JSON.stringify({ index, id, function: { name, arguments: args } }));
const plain = (id: string, args: string, name = 'f') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});

/** These deltas, and an end, as they go on. */
function tidied(...deltas: JsonObject[]): JsonObject[] {
  let made = 0;
  const tidier = new ChunkTidier(() => `new${made++}`);
  const choices = deltas.map((one): JsonObject => ({ index: 0, delta: { tool_calls: [one] } }));
  for (const choice of [...choices, { index: 0, finish_reason: 'stop' }]) tidier.tidy({ choices: [choice] });
  return choices.map(({ delta }) => objectOf(delta));
}

/** The calls that are put together from these deltas. */
function streamed(...deltas: JsonObject[]): unknown {
  const assembler = new ReplyAssembler();
  for (const delta of tidied(...deltas)) assembler.add(delta);
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
    expect(streamed(call('a', 'find', '{', 0), call(undefined, 'find', '}', 0))).to.deep.equal(expected);
    // A trailing one has nothing more to say.
    expect(streamed(call('a', 'find', '{}', 0), call(undefined, 'find', '', 0))).to.deep.equal(expected);
    // An id that comes late.
    expect(streamed(call('', 'find', '{', 0), call('z', 'find', '}', 0))).to.deep.equal([
      plain('new0', '{}', 'find'),
    ]);
  });

  it('are kept apart where the engine has neither an id nor an index of its own for them', () => {
    for (const [id, index] of [
      ['', 0],
      [undefined, undefined],
      ['a', 0],
    ] as const) {
      const one = (name: string, args: unknown) => call(id, name, args, index);
      const names = ['f', 'g', 'g'];
      const calls = streamed(one('f', '{}'), one('g', { x: 1 }), one('g', '{"x"'), one('g', ':2}'));
      const told = (calls as ReturnType<typeof plain>[]).map((made) => made.function);
      expect(told.map(({ name }) => name)).to.deep.equal(names);
      expect(told.map((made) => made.arguments)).to.deep.equal(['{}', '{"x":1}', '{"x":2}']);
    }
  });

  it('go on when their name is known', () => {
    const first = { ...call('a', '', '{', 0), extra: 1 };
    const begun = { ...plain('a', '{}'), index: 0, extra: 1 };
    expect(tidied(first, call('a', 'f', '}', 0))).to.deep.equal([{}, { tool_calls: [begun] }]);
    // Another one that has its name by then is told before.
    const calls = streamed(call('a', undefined, '{', 0), call('b', 'g', '[]', 1), call('a', 'f', '}', 0));
    expect(calls).to.deep.equal([plain('b', '[]', 'g'), plain('a', '{}')]);
    const nameless = 'a tool call without a name';
    for (const none of [{}, call('a', '', '{}'), { id: 'a', function: 'f' }]) {
      expect(() => whole(none), JSON.stringify(none)).to.throw(nameless);
      expect(() => streamed(none), JSON.stringify(none)).to.throw(nameless);
    }
  });

  it('are calls', () => {
    for (const calls of [{}, 'f', [null], ['f'], [[]]]) {
      const says = JSON.stringify(calls);
      expect(() => tidyReply({ choices: [{ message: { tool_calls: calls } }] }, String), says).to.throw(
        'none',
      );
      const chunk = { choices: [{ delta: { tool_calls: calls } }] };
      expect(() => new ChunkTidier(String).tidy(chunk), says).to.throw('none');
    }
  });

  it('are why a reply that is whole has ended', () => {
    const ended = (message: JsonObject, finish_reason?: string) => {
      const choice: JsonObject = { message, finish_reason: finish_reason ?? null };
      tidyReply({ choices: [choice] }, String);
      return choice['finish_reason'];
    };
    const message = { tool_calls: [call('a', 'f', '{}')] };
    expect(ended(message)).to.equal('tool_calls');
    expect(ended(message, 'length')).to.equal('length');
    expect(ended({ content: 'x', tool_calls: [] })).to.equal('stop');
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
