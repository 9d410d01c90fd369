import { expect } from 'chai';
import type { JsonObject } from './json.ts';
import { chunksOf } from './made-stream.ts';
import { ReplyAssembler } from './reply.ts';

const call = (id: string): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: '{"a": 1}' },
});

const deltasOf = (chunks: JsonObject[], index: number): JsonObject[] =>
  chunks
    .flatMap((chunk) => chunk['choices'] as JsonObject[])
    .filter((choice) => choice['index'] === index)
    .map((choice) => choice['delta'] as JsonObject);

describe('a stream made from a whole reply', () => {
  const message: JsonObject = {
    role: 'assistant',
    content: 'text',
    reasoning_content: 'thought',
    refusal: null,
    tool_calls: [call('1'), call('2')],
  };
  const reply: JsonObject = {
    id: 'c',
    object: 'chat.completion',
    created: 3,
    model: 'm',
    choices: [
      { index: 0, message, finish_reason: 'tool_calls' },
      { index: 1, message: { role: 'assistant', content: '' }, finish_reason: 'stop' },
    ],
    usage: { completion_tokens: 4 },
  };
  const chunks = [...chunksOf(reply)];

  it('gives back the message when it is put together', () => {
    const assembler = new ReplyAssembler();
    for (const delta of deltasOf(chunks, 0)) assembler.add(delta);
    const { refusal: _, ...said } = message;
    expect(assembler.message).to.deep.equal(said);
  });

  it('tells the logprobs once, whatever is said', () => {
    const logprobs = { content: [{ token: 'a', logprob: -1 }], refusal: null };
    const messages: JsonObject[] = [
      { content: 'text' },
      { content: '' },
      { content: null, reasoning_content: 'thought' },
      { content: 'text', reasoning_content: 'thought', tool_calls: [call('1')] },
      { content: null, tool_calls: [call('1'), call('2')] },
      { content: null },
    ];
    const choices = messages.map((one, index) => ({ index, message: one, logprobs, finish_reason: 'stop' }));
    const parts = [...chunksOf({ choices })].flatMap((chunk) => chunk['choices'] as JsonObject[]);
    for (const { index } of choices) {
      const told = parts.filter((one) => one['index'] === index).map((one) => one['logprobs'] ?? null);
      expect(
        told.filter((one) => one !== null),
        JSON.stringify(messages[index]),
      ).to.deep.equal([logprobs]);
    }
  });

  it('tells with its end which stop string was met', () => {
    const ends = [{ stop_reason: 'x' }, { matched_stop: 'y' }, {}];
    const choices = ends.map((end, index) => ({ index, message, finish_reason: 'stop', ...end }));
    const parts = [...chunksOf({ choices })].flatMap((chunk) => chunk['choices'] as JsonObject[]);
    const last = parts.filter((one) => one['finish_reason'] !== null);
    expect(last).to.deep.equal(
      ends.map((end, index) => ({ index, delta: {}, finish_reason: 'stop', ...end })),
    );
  });

  it('ends each choice once, and tells the usage last', () => {
    const ends = chunks.flatMap((chunk) => chunk['choices'] as JsonObject[]);
    expect(ends.map((choice) => choice['finish_reason']).filter((word) => word !== null)).to.deep.equal([
      'tool_calls',
      'stop',
    ]);
    expect(chunks.at(-1)).to.deep.include({ choices: [], usage: { completion_tokens: 4 } });
    for (const chunk of chunks) expect(chunk).to.include({ id: 'c', object: 'chat.completion.chunk' });
  });
});
