import { expect } from 'chai';
import { BASH } from '../testing.ts';
import { loadModel } from '../tokenizer/tokenizer.ts';
import { type Turn, writeTurn } from './format.ts';
import { type Generation, generate } from './generation.ts';
import type { ParserOptions } from './parser.ts';

const TURN: Turn = {
  think: 'Two things to do.\n\nFirst this.',
  text: 'I will look: 你好 😀.',
  calls: [
    { name: 'bash', arguments: { command: 'echo "a}{" \\ \n ls', deep: { list: [1, { x: null }] } } },
    { name: 'bash', arguments: { command: '' } },
  ],
};

describe('a generated reply', function () {
  this.timeout(30_000);
  const { tokenizer } = loadModel();
  const whole = { tokensMax: 10_000, stop: [] };
  const options = (more: Partial<ParserOptions> = {}): ParserOptions => ({
    format: 'hermes',
    keepContentNewline: false,
    tools: [BASH],
    ...more,
  });
  const make = (text: string, limits = {}, more: Partial<ParserOptions> = {}): Generation =>
    generate(tokenizer, text, { ...whole, ...limits }, options(more));

  for (const format of ['hermes', 'xml'] as const) {
    it(`is taken apart into what it was written from: ${format}`, () => {
      const { message, finish, steps } = make(writeTurn(TURN, format), {}, { format });
      expect(message.reasoning).to.equal(TURN.think);
      expect(message.content).to.equal(TURN.text);
      expect(message.calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) }))).to.deep.equal(
        TURN.calls,
      );
      expect(finish).to.equal('tool_calls');
      expect(steps.at(-1)?.id).to.equal(tokenizer.idOf('<|im_end|>'));
    });

    it(`has ids that say its text: ${format}`, () => {
      const text = writeTurn(TURN, format);
      const ids = make(text, {}, { format }).steps.map(({ id }) => id);
      expect(tokenizer.decode(ids)).to.equal(`${text}<|im_end|>`);
    });
  }

  it('keeps tool calls as text where no tools are offered', () => {
    const { message, finish } = make(writeTurn({ ...TURN, think: '' }, 'hermes'), {}, { tools: [] });
    expect(message.calls).to.deep.equal([]);
    expect(message.content).to.contain('<tool_call>');
    expect(finish).to.equal('stop');
  });

  it('is cut by its token limit, with an open call as text', () => {
    const text = writeTurn({ think: '', text: 'So.', calls: TURN.calls.slice(0, 1) }, 'hermes');
    const { message, finish, matched, steps } = make(text, { tokensMax: 12 });
    expect(steps).to.have.length(12);
    expect([finish, matched]).to.deep.equal(['length', null]);
    expect(message.calls).to.deep.equal([]);
    expect(text.startsWith(message.content)).to.equal(true);
    expect(message.content).to.contain('<tool_call>');
  });

  it('ends before a stop string, with the tokens that made it', () => {
    const { message, finish, matched, steps } = make('one two three four', { stop: ['four', 'o thr'] });
    expect(message.content).to.equal('one tw');
    expect([finish, matched]).to.deep.equal(['stop', 'o thr']);
    expect(tokenizer.decode(steps.map(({ id }) => id))).to.equal('one two three');
  });

  it('keeps the newline before a call where that is wanted', () => {
    const text = writeTurn({ ...TURN, think: '' }, 'hermes');
    expect(make(text, {}, { keepContentNewline: true }).message.content).to.equal(`${TURN.text}\n`);
  });

  it('shows a broken call as text', () => {
    const { message, finish } = make('<tool_call>\nnonsense\n</tool_call>');
    expect(message.content).to.equal('<tool_call>\nnonsense\n</tool_call>');
    expect(finish).to.equal('stop');
  });
});
