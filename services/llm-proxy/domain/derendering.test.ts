// Samples of vLLM 0.32.0 with --tool-call-parser hermes --reasoning-parser qwen3, shortened: what it generated, what derendering
// made of that, and what its chat said.
import { expect } from 'chai';
import { asInChat, toDerender } from './derendering.ts';
import type { JsonObject } from './json.ts';

const call = (id: string): JsonObject => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
const said = (content: string | null, more: JsonObject = {}): JsonObject => ({
  role: 'assistant',
  content,
  ...more,
});
const generated = (more: JsonObject): JsonObject => ({
  index: 0,
  token_ids: [5, 6, 2],
  finish_reason: 'stop',
  stop_reason: null,
  ...more,
});
const told = (choice: JsonObject, message: JsonObject, sent: JsonObject = {}): JsonObject =>
  asInChat(generated(choice), { index: 0, message, finish_reason: choice['finish_reason'] ?? 'stop' }, sent);

describe('what is derendered', () => {
  const idsOf = (choice: JsonObject, sent: JsonObject = {}): unknown =>
    toDerender([generated(choice)], sent).map(({ token_ids }) => token_ids);

  it('leaves out the id that ended the turn: no limit or stop string did', () => {
    expect(idsOf({})).to.deep.equal([[5, 6]]);
    expect(idsOf({ stop_reason: 2 })).to.deep.equal([[5, 6]]);
    expect(idsOf({ stop_reason: 'x' })).to.deep.equal([[5, 6, 2]]);
    expect(idsOf({ finish_reason: 'length' })).to.deep.equal([[5, 6, 2]]);
    expect(idsOf({ finish_reason: 'repetition', stop_reason: 'repetition_detected' })).to.deep.equal([
      [5, 6, 2],
    ]);
    expect(idsOf({}, { include_stop_str_in_output: true })).to.deep.equal([[5, 6, 2]]);
  });

  it('has ids in each choice', () => {
    expect(idsOf({ token_ids: [] })).to.deep.equal([]);
    expect(idsOf({ token_ids: null })).to.deep.equal([]);
    expect(idsOf({ token_ids: [2] })).to.deep.equal([[2]]);
  });
});

describe('a derendered choice as a chat tells it', () => {
  it('says nothing where only the end was sampled, or nothing', () => {
    const end = told({ token_ids: [2] }, said('<|im_end|>'));
    expect(end).to.deep.include({ message: said(''), finish_reason: 'stop' });
    const interrupted = generated({ token_ids: [], finish_reason: 'abort' });
    expect(asInChat(interrupted, undefined, {})).to.deep.include({
      index: 0,
      message: said(''),
      finish_reason: 'abort',
    });
  });

  it('ends before the stop string that was met, and tells it', () => {
    const stopped = { stop_reason: 'STOP' };
    expect(told(stopped, said('Again STOP.'))).to.deep.include({
      message: said('Again '),
      finish_reason: 'stop',
      stop_reason: 'STOP',
    });
    const shown = { include_stop_str_in_output: true };
    expect(told(stopped, said('Again STOP.'), shown)['message']).to.deep.equal(said('Again STOP'));
    const thinking = said(null, { reasoning: 'Well STOP' });
    expect(told(stopped, thinking)['message']).to.deep.equal(said(null, { reasoning: 'Well ' }));
    // A parser may have taken it away.
    expect(told(stopped, said('Again'))['message']).to.deep.equal(said('Again'));
  });

  it('ends at the first stop string, at the last one where the first were not to count', () => {
    const stopped = { stop_reason: '\n' };
    expect(told(stopped, said('one\n\n'))['message']).to.deep.equal(said('one'));
    expect(told(stopped, said('one\ntwo\n'), { min_tokens: 4 })['message']).to.deep.equal(said('one\ntwo'));
  });

  it('has called tools where it ended by itself, and none was to be called by name', () => {
    const calling = said(null, { tool_calls: [call('1'), call('2')] });
    const finish = (choice: JsonObject, sent: JsonObject): unknown =>
      told(choice, calling, sent)['finish_reason'];
    expect(finish({}, {})).to.equal('tool_calls');
    expect(finish({ stop_reason: '</tool_call>' }, { tool_choice: 'required' })).to.equal('tool_calls');
    expect(finish({}, { tool_choice: { type: 'function', function: { name: 'f' } } })).to.equal('stop');
    expect(finish({ finish_reason: 'length' }, {})).to.equal('length');
    expect(told({}, said('text', { tool_calls: [] }))['finish_reason']).to.equal('stop');
  });

  it('has the first call alone where there are to be no others beside it', () => {
    const calling = said(null, { tool_calls: [call('1'), call('2')] });
    const { message } = told({}, calling, { parallel_tool_calls: false });
    expect(message).to.deep.equal(said(null, { tool_calls: [call('1')] }));
    expect(told({}, calling, { parallel_tool_calls: true })['message']).to.deep.equal(calling);
  });
});
