import { expect } from 'chai';
import { finishReasonOf, ReplyAssembler, saysSomething } from './reply.ts';

describe('reply assembler', () => {
  it('puts text, reasoning and parallel tool calls together', () => {
    const assembler = new ReplyAssembler();
    const named = (index: number, name: string) => ({
      tool_calls: [{ index, id: `c${index}`, type: 'function', function: { name, arguments: '' } }],
    });
    const args = (index: number, text: string) => ({
      tool_calls: [{ index, function: { arguments: text } }],
    });
    const deltas = [
      { role: 'assistant', content: '' },
      { reasoning_content: 'h' },
      { reasoning_content: 'm' },
      { content: '\n\na ' },
      { content: 'b', reasoning_content: null },
      named(0, 'bash'),
      args(0, '{ "a'),
      named(1, 'read'),
      args(1, '{}'),
      args(0, '":1}'),
      {},
    ];
    for (const delta of deltas) assembler.add(delta);
    expect(assembler.message).to.deep.equal({
      role: 'assistant',
      content: '\n\na b',
      reasoning_content: 'hm',
      tool_calls: [
        { id: 'c0', type: 'function', function: { name: 'bash', arguments: '{ "a":1}' } },
        { id: 'c1', type: 'function', function: { name: 'read', arguments: '{}' } },
      ],
    });
  });

  it('keeps the order of long texts that take turns, whenever it is asked', () => {
    const assembler = new ReplyAssembler();
    const told = { content: '', reasoning_content: '' };
    for (let i = 0; i < 200; i++) {
      const key = i % 50 < 40 ? 'content' : 'reasoning_content';
      assembler.add({ [key]: `${i} `, refusal: null });
      told[key] += `${i} `;
      if (i % 33 === 0) {
        expect(assembler.soFar).to.include({ content: told.content });
        expect(assembler.message).to.include({ content: told.content });
      }
    }
    expect(assembler.message).to.deep.equal({ role: 'assistant', refusal: null, ...told });
  });

  it('gives an empty message for an empty reply', () => {
    expect(new ReplyAssembler().message).to.deep.equal({ role: 'assistant', content: null });
  });
});

describe('a delta', () => {
  it('says something when there is more in it than a role', () => {
    for (const delta of [{}, { role: 'assistant', content: '' }, { content: null, tool_calls: [] }]) {
      expect(saysSomething(delta)).to.equal(false);
    }
    for (const delta of [{ content: ' ' }, { reasoning: 'x' }, { tool_calls: [{ index: 0 }] }]) {
      expect(saysSomething(delta)).to.equal(true);
    }
  });
});

describe('finish reasons', () => {
  it('are those of the record', () => {
    const words = ['stop', 'length', 'tool_calls', 'function_call', 'abort', 'content_filter'];
    const expected = ['stop', 'length', 'tool_calls', 'tool_calls', 'abort', 'stop'];
    expect(words.map(finishReasonOf)).to.deep.equal(expected);
  });
});
