import { expect } from 'chai';
import { unknownFields, withoutFields } from './unknown-fields.ts';

const SENT = { messages: [], model: 'm', stop: ['x'], top_k: 4, chat_template_kwargs: {}, max_tokens: 9 };

describe('fields that an API does not know', () => {
  it('are those that it names, in the words of several', () => {
    const said: [string, string[]][] = [
      ["Unknown parameter: 'chat_template_kwargs.enable_thinking'.", ['chat_template_kwargs']],
      ["Unsupported parameter: 'max_tokens' is not supported with this model.", ['max_tokens']],
      [
        'Unrecognized request arguments supplied: chat_template_kwargs, top_k',
        ['chat_template_kwargs', 'top_k'],
      ],
      ['Invalid JSON payload received. Unknown name "top_k": Cannot find field.', ['top_k']],
      [
        '{"detail":[{"type":"extra_forbidden","loc":["body","top_k"],"msg":"Extra inputs are not permitted"}]}',
        ['top_k'],
      ],
      ["Unknown parameter: 'stop'. Unknown parameter: 'messages'. Unknown parameter: 'seed'.", []],
      ['top_k must be at most 2', []],
    ];
    for (const [message, fields] of said) expect(unknownFields(SENT, message), message).to.deep.equal(fields);
  });

  it('are left out, but for a limit, which has another name', () => {
    expect(withoutFields(SENT, new Set(['top_k', 'max_tokens', 'seed']))).to.deep.equal({
      messages: [],
      model: 'm',
      stop: ['x'],
      chat_template_kwargs: {},
      max_completion_tokens: 9,
    });
  });
});
