import { expect } from 'chai';
import { arrayOf, objectOf } from './json.ts';
import { readWrittenTurn } from './written-turn.ts';

const CALL = '<tool_call>\n{"name": "run", "arguments": {"of": "a b"}}\n</tool_call>';
const read = (text: string, tools = true) => readWrittenTurn(text, tools, () => 'c1');

describe('a written turn', () => {
  it('is text as it stands', () => {
    expect(read(' Done.\n')).to.deep.equal({ role: 'assistant', content: ' Done.\n' });
    expect(read('')).to.deep.equal({ role: 'assistant', content: '' });
  });

  it('has its thinking apart, whether the prompt began it or the model', () => {
    const turn = { role: 'assistant', content: 'Done.', reasoning_content: 'I see.' };
    expect(read('<think>\nI see.\n</think>\n\nDone.')).to.deep.equal(turn);
    expect(read('I see.\n</think>\n\nDone.')).to.deep.equal(turn);
  });

  it('has its calls apart, one after another', () => {
    const turn = read(`Look.\n${CALL}\n${CALL}`);
    expect(turn['content']).to.equal('Look.');
    const one = { id: 'c1', type: 'function', function: { name: 'run', arguments: '{"of": "a b"}' } };
    expect(turn['tool_calls']).to.deep.equal([one, one]);
  });

  it('has arguments as they were written, every digit of them', () => {
    const argumentsIn = (call: string): unknown => {
      const [made] = arrayOf(read(`<tool_call>\n${call}\n</tool_call>`)['tool_calls']).map(objectOf);
      return objectOf(made?.['function'])['arguments'];
    };
    const written = '{"id": 12345678901234567890, "of": [1.0, "ß \\u00df }"]}';
    expect(argumentsIn(`{"arguments": ${written}, "name": "run"}`)).to.equal(written);
    expect(argumentsIn('{"name": "run", "arguments": "{ }"}')).to.equal('{ }');
    expect(argumentsIn('{"name": "run", "arguments": ""}')).to.equal('');
    for (const none of ['{"name": "run"}', '{"name": "run", "arguments": null}'])
      expect(argumentsIn(none)).to.equal('{}');
  });

  it('is all thinking where it was cut short in it', () => {
    const turn = { role: 'assistant', content: '', reasoning_content: 'I see' };
    expect(read('<think>\nI see ')).to.deep.equal(turn);
    expect(read('\n<think>')).to.deep.equal({ ...turn, reasoning_content: '' });
  });

  it('is read in one pass, whatever a model repeats', () => {
    for (const text of [`<tool_call>${' '.repeat(100_000)}`, '<tool_call>\n'.repeat(200_000)])
      expect(read(text)['content']).to.equal(text);
  });

  it('keeps as text what is no whole call', () => {
    for (const text of [
      '<tool_call>\n{"name": "ru',
      '<tool_call>{nothing}</tool_call>',
      '<tool_call>[1]</tool_call>',
    ]) {
      expect(read(text)).to.deep.equal({ role: 'assistant', content: text });
    }
    expect(read(CALL, false)).to.deep.equal({ role: 'assistant', content: CALL });
  });
});
