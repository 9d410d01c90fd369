import { expect } from 'chai';
import { PolarError } from '../../common/errors.ts';
import { checkChatRequest, engineBody } from './openai-chat.ts';
import { errorBody, statusOf, visibleChunk, visibleReply } from './openai-chat-reply.ts';

const messages = [{ role: 'user', content: 'x' }];

describe('openai-chat request', () => {
  it('is refused with all faults at once', () => {
    const bad = () => checkChatRequest({ messages: [{}, 3], stream: 1, n: 2, tools: 'x' });
    const error = expect(bad).to.throw(PolarError);
    error.with.property('reason', 'DIALECT_INVALID');
    try {
      bad();
    } catch (thrown) {
      const fields = (thrown as PolarError).fields.map(({ field }) => field);
      expect(fields).to.deep.equal(['stream', 'tools', 'n', 'messages[0].role', 'messages[1]']);
    }
  });

  it('takes null for absent', () => {
    expect(checkChatRequest({ messages, tools: null, stream: null, n: 1 })).to.include({ stream: false });
  });

  it('keeps what it does not know, and drops what would bend the record', () => {
    const asked = checkChatRequest({
      messages,
      input_ids: [1],
      return_anything: 1,
      prompt_logprobs: 1,
      echo: true,
      n: 1,
      parallel_tool_calls: false,
      stream_options: { include_usage: false },
    });
    expect(engineBody(asked, 'served', { logprobs: true }, undefined)).to.deep.equal({
      messages,
      parallel_tool_calls: false,
      logprobs: true,
      model: 'served',
      stream: false,
    });
    expect(asked.body).to.have.property('input_ids');
  });
});

describe('openai-chat reply', () => {
  const chunk = () => ({
    model: 'served',
    choices: [
      { index: 0, delta: { content: 'a' }, logprobs: { content: [] }, token_ids: [1], finish_reason: null },
    ],
    usage: { completion_tokens: 1 },
    prompt_token_ids: [1],
  });

  it('shows the model that was asked for and nothing of the engine', () => {
    const seen = visibleChunk(chunk(), checkChatRequest({ messages, stream: true }), 'alias');
    expect(seen).to.deep.equal({
      model: 'alias',
      choices: [{ index: 0, delta: { content: 'a' }, logprobs: null, finish_reason: null }],
    });
  });

  it('drops a chunk of which nothing is left, and keeps the usage that was asked for', () => {
    const last = () => ({ choices: [], usage: { completion_tokens: 1 }, sglext: { input_ids: [1] } });
    const plain = checkChatRequest({ messages, stream: true });
    expect(visibleChunk(last(), plain, 'm')).to.equal(undefined);
    const usage = checkChatRequest({ messages, stream: true, stream_options: { include_usage: true } });
    expect(visibleChunk(last(), usage, 'm')).to.deep.equal({ choices: [], usage: { completion_tokens: 1 } });
    const logprobs = checkChatRequest({ messages, logprobs: true });
    expect(visibleReply(chunk(), logprobs, 'm')).to.have.nested.property('choices[0].logprobs.content');
  });

  it('tells errors with status, type, code and field', () => {
    const fields = [{ field: 'messages', description: 'd' }];
    const cases: [PolarError, number, object][] = [
      [
        new PolarError('DIALECT_INVALID', 'm', { fields }),
        400,
        { type: 'invalid_request_error', param: 'messages' },
      ],
      [new PolarError('CALLS_IN_FLIGHT_LIMIT', 'm'), 429, { type: 'rate_limit_error' }],
      [new PolarError('ENGINE_TIMEOUT', 'm'), 504, { type: 'server_error', code: 'engine_timeout' }],
      [new PolarError('INTERNAL', 'm'), 500, { type: 'server_error' }],
      [
        new PolarError(
          'ENGINE_REFUSED',
          "Requested token count exceeds the model's maximum context length of 40.",
        ),
        400,
        { code: 'context_length_exceeded', param: 'messages' },
      ],
    ];
    for (const [error, status, expected] of cases) {
      expect(statusOf(error)).to.equal(status);
      expect(errorBody(error)['error']).to.include(expected);
    }
  });
});
