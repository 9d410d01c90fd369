import { expect } from 'chai';
import { Replies } from './tool-calls.ts';

const invalid = (reply: object, finishReason = 'stop'): boolean => {
  const replies = new Replies();
  replies.add({ d: JSON.stringify({ role: 'assistant', content: null, ...reply }) });
  return replies.hasInvalidCall('d', finishReason);
};
const calls = (...texts: string[]): object => ({
  tool_calls: texts.map((text, i) => ({
    id: `${i}`,
    type: 'function',
    function: { name: 'f', arguments: text },
  })),
});

describe('tool calls of a reply', () => {
  it('can be read when their arguments are a JSON object, or there are none', () => {
    expect(invalid(calls('{"a":1}', '', '{}'), 'tool_calls')).to.equal(false);
    expect(invalid({ content: 'no call' })).to.equal(false);
  });

  it('cannot when their arguments are anything else', () => {
    for (const text of ['{"a":', '[1]', 'null', 'ls -l'])
      expect(invalid(calls('{}', text)), text).to.equal(true);
    expect(invalid({ tool_calls: [{ function: { name: '', arguments: '{}' } }] })).to.equal(true);
  });

  it('cannot when they were left in the text, but for examples in fenced code', () => {
    expect(invalid({ content: 'I call\n<tool_call>\n{"name": "f"}' })).to.equal(true);
    expect(invalid({ content: '  <function=f>' })).to.equal(true);
    expect(invalid({ content: 'write\n```\n<tool_call>\n```\nso' })).to.equal(false);
    expect(invalid({ content: 'a <tool_call> in a line' })).to.equal(false);
  });

  it('are missing when the engine ended for them and none is there', () => {
    expect(invalid({ content: 'x' }, 'tool_calls')).to.equal(true);
    expect(invalid(calls('{}'), 'tool_calls')).to.equal(false);
  });

  it('are not judged where the reply was not recorded, or is not the model’s', () => {
    expect(new Replies().hasInvalidCall('unknown', 'tool_calls')).to.equal(false);
    expect(invalid({ role: 'user', content: '<tool_call>' }, 'tool_calls')).to.equal(false);
  });
});
