import { expect } from 'chai';
import { DEFAULT_SWITCHES } from '../switches.ts';
import { BASH, user } from '../testing.ts';
import { loadModel } from '../tokenizer/tokenizer.ts';
import { Prompts } from './prompt.ts';
import { readPrompt } from './reading.ts';

describe('a prompt read', function () {
  this.timeout(20_000);
  const prompts = new Prompts(loadModel());
  const call = { function: { name: 'bash', arguments: '{"command": "ls"}' } };

  it('is the conversation that was rendered', () => {
    const messages = [
      { role: 'system' as const, content: 'Be brief.' },
      user('count'),
      { role: 'assistant' as const, content: 'I look.', tool_calls: [call, call] },
      { role: 'tool' as const, content: 'a\nb' },
      { role: 'tool' as const, content: '' },
    ];
    const text = prompts.text({ messages, tools: [BASH] }, DEFAULT_SWITCHES);
    const read = readPrompt(text);
    expect(read.messages.map(({ role }) => role)).to.deep.equal([
      'system',
      'user',
      'assistant',
      'tool',
      'tool',
    ]);
    expect(read.messages[0]?.content).to.equal('Be brief.');
    expect(read.messages.slice(3).map(({ content }) => content)).to.deep.equal(['a\nb', '']);
    expect(read.tools).to.deep.equal([BASH]);
  });

  it('has no tools and no instructions where there are none', () => {
    const read = readPrompt(prompts.text({ messages: [user('count')] }, DEFAULT_SWITCHES));
    expect(read).to.deep.equal({ messages: [user('count')], tools: [] });
    const withTools = prompts.text({ messages: [user('count')], tools: [BASH] }, DEFAULT_SWITCHES);
    expect(readPrompt(withTools).messages).to.deep.equal([user('count')]);
  });
});
