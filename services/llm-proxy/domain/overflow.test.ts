import { expect } from 'chai';
import { PolarError } from '../../common/errors.ts';
import { isOverflow, overflowSizes } from './overflow.ts';

/** As the engines said it: vLLM 0.32, its /inference/v1/generate, llama-server, SGLang 0.5.23; vLLM 0.12; OpenAI. */
const SAID: readonly [string, number | undefined, number | undefined, number][] = [
  [
    "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens, " +
      'which exceeds this limit even without any output tokens.',
    4097,
    undefined,
    4096,
  ],
  // It did not count the tokens of what is that long.
  [
    "This model's maximum context length is 4096 tokens. However, your prompt contains 600000 characters (more than " +
      '524288 characters, which is the upper bound for 4096 input tokens). Please reduce the length of the input ' +
      'prompt. (parameter=input_text, value=600000)',
    undefined,
    undefined,
    4096,
  ],
  ["Input length (5000) exceeds model's maximum context length (4096).", 5000, undefined, 4096],
  [
    'The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that',
    5000,
    undefined,
    4096,
  ],
  [
    'request (9031 tokens) exceeds the available context size (4096 tokens), try increasing it',
    9031,
    undefined,
    4096,
  ],
  [
    "The input (12011 tokens) is longer than the model's context length (4096 tokens).",
    12011,
    undefined,
    4096,
  ],
  [
    "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 4111 " +
      'tokens: 21 tokens from the input messages and 4090 tokens for the completion.',
    21,
    4090,
    4096,
  ],
  [
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens " +
      'and your request has 1021 input tokens (32000 > 32768 - 1021).',
    1021,
    32_000,
    32_768,
  ],
  [
    "This model's maximum context length is 8192 tokens. However, you requested 9021 tokens (1021 in the messages, " +
      '8000 in the completion). Please reduce the length of the messages or completion.',
    1021,
    8_000,
    8_192,
  ],
  [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9021 tokens.",
    9021,
    undefined,
    8_192,
  ],
];

describe('overflow', () => {
  it('is known by the words of each engine, with its numbers', () => {
    for (const [message, prompt, reply, most] of SAID) {
      expect(isOverflow(new PolarError('ENGINE_REFUSED', message)), message).to.equal(true);
      expect(overflowSizes(message), message).to.deep.equal({ prompt, reply, most });
    }
    expect(isOverflow(new PolarError('ENGINE_REFUSED', 'temperature must not be negative'))).to.equal(false);
    expect(isOverflow(new PolarError('ENGINE_ERROR', SAID[0]![0]))).to.equal(false);
  });
});
