import { expect } from 'chai';
import type { JsonObject } from './json.ts';
import { digestMessage, digestTools } from './messages.ts';

const digest = (message: JsonObject): string => digestMessage(message).digest;
const call = (args: string, more: JsonObject = {}): JsonObject => ({
  role: 'assistant',
  tool_calls: [{ id: 'c1', type: 'function', function: { name: 'bash', arguments: args }, ...more }],
});

describe('message digests', () => {
  it('do not depend on the order of keys', () => {
    expect(digest({ role: 'user', content: 'x' })).to.equal(digest({ content: 'x', role: 'user' }));
  });

  it('take an empty content for none, however it is written', () => {
    const forms: JsonObject[] = [
      call('{}'),
      { ...call('{}'), content: null },
      { ...call('{}'), content: '' },
      { ...call('{}'), content: [], refusal: null },
    ];
    expect(new Set(forms.map(digest)).size).to.equal(1);
  });

  it('compare tool arguments by value, and their text where it is no JSON', () => {
    expect(digest(call('{ "a" : "\\u006c", "b":[1] }'))).to.equal(digest(call('{"b":[1],"a":"l"}')));
    expect(digest(call('{"a":1}'))).to.not.equal(digest(call('{"a":2}')));
    expect(digest(call('{"a":'))).to.not.equal(digest(call('{"a"')));
    expect(digest(call('{}', { index: 0 }))).to.equal(digest(call('{}')));
    expect(digest(call('{}', { id: 'c2' }))).to.not.equal(digest(call('{}')));
  });

  it('know reasoning under both of its names', () => {
    const thought = { role: 'assistant', content: 'x' };
    const digests = [
      { ...thought, reasoning: 'hm' },
      { ...thought, reasoning_content: 'hm' },
      { ...thought, reasoning: 'hm', reasoning_content: 'hm' },
    ].map(digest);
    expect(new Set(digests).size).to.equal(1);
    expect(digests[0]).to.not.equal(digest(thought));
  });

  it('take one text part for its text, and keep what is more', () => {
    const part = { type: 'text', text: 'x' };
    expect(digest({ role: 'user', content: [part] })).to.equal(digest({ role: 'user', content: 'x' }));
    const marked = { ...part, cache_control: { type: 'ephemeral' } };
    expect(digest({ role: 'user', content: [marked] })).to.not.equal(digest({ role: 'user', content: 'x' }));
    expect(digest({ role: 'user', content: [part, part] })).to.not.equal(
      digest({ role: 'user', content: 'xx' }),
    );
  });

  it('differ by role, white space and tool result', () => {
    const all = [
      { role: 'user', content: 'x' },
      { role: 'system', content: 'x' },
      { role: 'user', content: 'x ' },
      { role: 'tool', content: 'x', tool_call_id: 'a' },
      { role: 'tool', content: 'x', tool_call_id: 'b' },
    ].map(digest);
    expect(new Set(all).size).to.equal(all.length);
    expect(digestTools([{ b: 1, a: 2 }]).digest).to.equal(digestTools([{ a: 2, b: 1 }]).digest);
  });
});
