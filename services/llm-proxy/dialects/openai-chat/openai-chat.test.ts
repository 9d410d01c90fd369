import { expect } from 'chai';
import { PolarError } from '../../../common/errors.ts';
import { ChunkReader } from '../../domain/alike-chunks.ts';
import { engineBody } from '../../domain/engine-body.ts';
import type { JsonObject } from '../../domain/json.ts';
import { statusOf } from '../../http/status.ts';
import type { Asked } from '../dialect.ts';
import { openaiChat } from './dialect.ts';
import { chatWriter, visibleChunk } from './reply.ts';

const messages = [{ role: 'user', content: 'x' }];
const read = (body: JsonObject): Asked => openaiChat.read(body, { kind: 'generate', dialect: 'openai-chat' });
const nothing = { logprobs: false, usage: false };

describe('openai-chat request', () => {
  it('is refused with all faults at once', () => {
    const bad = () => read({ messages: [{}, 3], stream: 1, n: 0, tools: 'x' });
    const error = expect(bad).to.throw(PolarError);
    error.with.property('reason', 'DIALECT_INVALID');
    try {
      bad();
    } catch (thrown) {
      const fields = (thrown as PolarError).fields.map(({ field }) => field);
      expect(fields).to.deep.equal(['stream', 'n', 'tools', 'messages[0].role', 'messages[1]']);
    }
  });

  it('takes null for absent', () => {
    expect(read({ messages, tools: null, stream: null, n: 1 })).to.include({ stream: false, n: 1 });
  });

  it('keeps what it does not know, and drops what would bend the record', () => {
    const asked = read({
      messages,
      input_ids: [1],
      routed_experts_start_len: 9,
      return_anything: 1,
      prompt_logprobs: 1,
      echo: true,
      n: 2,
      parallel_tool_calls: false,
      stream_options: { include_usage: false },
    });
    expect(engineBody(asked, 'served', { logprobs: true }, undefined)).to.deep.equal({
      messages,
      parallel_tool_calls: false,
      logprobs: true,
      model: 'served',
      n: 2,
      stream: false,
    });
    expect(engineBody({ ...asked, stream: true }, 'served', {}, undefined)).to.deep.include({
      ...{ stream: true, stream_options: { include_usage: true } },
    });
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
    const seen = visibleChunk(chunk(), nothing, 'alias');
    expect(seen).to.deep.equal({
      model: 'alias',
      choices: [{ index: 0, delta: { content: 'a' }, logprobs: null, finish_reason: null }],
    });
  });

  it('is the same for chunks that are alike as for each alone', () => {
    for (const wants of [nothing, { logprobs: true, usage: false }, { logprobs: false, usage: true }]) {
      const [alike, alone] = [chatWriter(wants, 'm').stream(), chatWriter(wants, 'm').stream()];
      const reader = new ChunkReader(() => 'made');
      for (const content of ['a', 'b', '"\u2028\u0007', '', 'c', 'd']) {
        const choice = { index: 0, delta: { content }, logprobs: { content: [] }, token_ids: [1] };
        const text = JSON.stringify({ id: 'c', model: 'engine', choices: [choice], usage: null });
        expect(alike.chunk(reader.read(text) as JsonObject)).to.equal(alone.chunk(JSON.parse(text)));
      }
    }
  });

  it('says what an engine says in escapes of its own', () => {
    const [stream, reader] = [chatWriter(nothing, 'm').stream(), new ChunkReader(() => 'made')];
    const said = ['a', 'b', 'c'].map((letter) => {
      const choice = { index: 0, delta: { content: letter } };
      const text = JSON.stringify({ choices: [choice] }).replace(
        `"${letter}"`,
        `"${letter}\\u00e4\\/\u2028"`,
      );
      const told = stream.chunk(reader.read(text) as JsonObject);
      expect(told).to.not.include('\u2028');
      return JSON.parse(told.slice('data: '.length)).choices[0].delta.content;
    });
    expect(said).to.deep.equal(['aä/\u2028', 'bä/\u2028', 'cä/\u2028']);
  });

  it('is on one line of a stream for every client', () => {
    const stream = chatWriter(nothing, 'm').stream();
    const told = stream.chunk({ choices: [{ index: 0, delta: { content: 'a\u2028b\u0085c\nd' } }] });
    expect(told.trimEnd()).to.not.match(/[\u2028\u0085\n]/);
    const data = JSON.parse(told.slice('data: '.length)) as object;
    expect(data).to.have.nested.property('choices[0].delta.content', 'a\u2028b\u0085c\nd');
  });

  it('drops a chunk of which nothing is left, and keeps the usage that was asked for', () => {
    const last = () => ({ choices: [], usage: { completion_tokens: 1 }, sglext: { input_ids: [1] } });
    expect(visibleChunk(last(), nothing, 'm')).to.equal(undefined);
    expect(visibleChunk(last(), { logprobs: false, usage: true }, 'm')).to.deep.equal({
      choices: [],
      usage: { completion_tokens: 1 },
    });
    expect(chatWriter({ logprobs: true, usage: false }, 'm').whole(chunk())).to.have.nested.property(
      'choices[0].logprobs.content',
    );
  });

  it('tells that a prompt is too long as clients know it, whatever the engine says', () => {
    const cases: [string, string][] = [
      [
        "The input (40011 tokens) is longer than the model's context length (4096 tokens).",
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 40011 tokens. " +
          'Please reduce the length of the messages.',
      ],
      [
        'request (20031 tokens) exceeds the available context size (4096 tokens), try increasing it',
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 20031 tokens. " +
          'Please reduce the length of the messages.',
      ],
      [
        'over the context window',
        'Your input exceeds the context window of this model: over the context window',
      ],
    ];
    for (const [said, message] of cases) {
      const { error } = openaiChat.errorBody(new PolarError('ENGINE_REFUSED', said), 400);
      expect(error).to.deep.equal({
        message,
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      });
    }
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
      expect(openaiChat.errorBody(error, status)['error']).to.include(expected);
    }
  });
});
