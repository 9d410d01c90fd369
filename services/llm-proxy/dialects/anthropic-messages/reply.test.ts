import { expect } from 'chai';
import { PolarError } from '../../../common/errors.ts';
import { type JsonObject, objectOf } from '../../domain/json.ts';
import { statusOf } from '../../http/status.ts';
import type { ReplyWriter } from '../dialect.ts';
import { openReasoning } from '../sealed-reasoning.ts';
import { inputOf } from './arguments.ts';
import { anthropicMessages } from './dialect.ts';

const writer = (more: JsonObject = {}): ReplyWriter =>
  anthropicMessages
    .read(
      { messages: [{ role: 'user', content: 'x' }], ...more },
      { kind: 'generate', dialect: 'anthropic-messages' },
    )
    .writer('alias');

const eventsIn = (text: string): JsonObject[] =>
  text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6)) as JsonObject);

const chunk = (delta: JsonObject, more: JsonObject = {}): JsonObject => ({
  id: 'chatcmpl-7',
  choices: [{ index: 0, delta, ...more }],
});
const call = (index: number, more: JsonObject): JsonObject => ({ tool_calls: [{ index, ...more }] });

function streamed(write: ReplyWriter, chunks: JsonObject[]): JsonObject[] {
  const stream = write.stream();
  return eventsIn(chunks.map((one) => stream.chunk(one)).join('') + stream.end());
}

describe('anthropic-messages reply', () => {
  it('has the text of a refusal', () => {
    const said = { content: null, refusal: 'No.' };
    const { content } = writer().whole({ choices: [{ message: said, finish_reason: 'stop' }] });
    expect(content).to.deep.equal([{ type: 'text', text: 'No.' }]);
    const events = streamed(writer(), [chunk(said), chunk({}, { finish_reason: 'stop' })]);
    expect(events[2]).to.have.nested.property('delta.text', 'No.');
  });

  it('has the numbers of a call as they were sampled', () => {
    const args = '{"id":1234567890123456789,"s":[1.50,-0,1e3,7]}';
    const tool_calls = [{ id: 'a', function: { name: 'f', arguments: args } }];
    const whole = writer().whole({ choices: [{ message: { tool_calls }, finish_reason: 'tool_calls' }] });
    expect(JSON.stringify(whole)).to.include(`"input":${args}`);
  });

  it('goes from thinking to text to calls, arguments as they were sampled', () => {
    const events = streamed(writer(), [
      { ...chunk({ role: 'assistant', content: '' }), prompt_token_ids: [1, 2, 3] },
      chunk({ reasoning_content: 'so' }),
      chunk({ reasoning: ' so' }),
      chunk({ content: 'text' }),
      chunk(call(0, { id: 'a', function: { name: 'f', arguments: '' } })),
      chunk(call(0, { function: { arguments: '{ "a":"\\u006c' } })),
      chunk(call(0, { function: { arguments: '"}' } })),
      chunk(call(1, { id: 'b', function: { name: 'g', arguments: '{}' } })),
      chunk({}, { finish_reason: 'tool_calls' }),
      {
        choices: [],
        usage: { prompt_tokens: 5, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 4 } },
      },
    ]);
    expect(events.map(({ type }) => type)).to.deep.equal([
      'message_start',
      ...['content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_delta'],
      'content_block_stop',
      ...['content_block_start', 'content_block_delta', 'content_block_stop'],
      ...['content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_stop'],
      ...['content_block_start', 'content_block_delta', 'content_block_stop'],
      ...['message_delta', 'message_stop'],
    ]);
    expect(events[0]).to.have.nested.property('message.usage.input_tokens', 3);
    const [thought, more, signed] = events.slice(2, 5).map(({ delta }) => delta as JsonObject);
    expect([thought, more]).to.deep.equal([
      { type: 'thinking_delta', thinking: 'so' },
      { type: 'thinking_delta', thinking: ' so' },
    ]);
    expect(openReasoning(String(signed?.['signature']))).to.equal('so so');
    expect(events[10]).to.have.nested.property('delta.partial_json', '{ "a":"\\u006c');
    expect(events.at(-2)).to.deep.equal({
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: null, stop_details: null },
      usage: {
        input_tokens: 1,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 4,
        output_tokens: 9,
        output_tokens_details: null,
      },
    });
  });

  it('leaves thinking out where the harness wants its signature alone', () => {
    const omitted = writer({ thinking: { type: 'adaptive', display: 'omitted' } });
    const events = streamed(omitted, [chunk({ reasoning_content: 'secret' }), chunk({ content: 'x' })]);
    expect(JSON.stringify(events)).not.to.contain('secret');
    expect(openReasoning(String(objectOf(events[2]?.['delta'])['signature']))).to.equal('secret');
    const message = { content: 'x', reasoning_content: 'secret' };
    const [block] = omitted.whole({ choices: [{ message }] })['content'] as JsonObject[];
    expect(block).to.include({ type: 'thinking', thinking: '' });
  });

  it('tells why it ended', () => {
    const stopOf = (choice: JsonObject) =>
      writer({ stop_sequences: ['END'] }).whole({ choices: [{ message: { content: 'x' }, ...choice }] });
    const cases: [JsonObject, string, string | null][] = [
      [{ finish_reason: 'stop', stop_reason: null }, 'end_turn', null],
      [{ finish_reason: 'stop', stop_reason: 'END' }, 'stop_sequence', 'END'],
      [{ finish_reason: 'stop', matched_stop: 'END' }, 'stop_sequence', 'END'],
      [{ finish_reason: 'stop', stop_reason: 151645 }, 'end_turn', null],
      [{ finish_reason: 'length' }, 'max_tokens', null],
      [{ finish_reason: 'content_filter' }, 'refusal', null],
    ];
    for (const [choice, stop_reason, stop_sequence] of cases) {
      expect(stopOf(choice)).to.include({ stop_reason, stop_sequence });
    }
  });

  it('says nothing where nothing was sampled', () => {
    const events = streamed(writer(), [chunk({ role: 'assistant', content: '' }, { finish_reason: 'stop' })]);
    expect(events.map(({ type }) => type)).to.deep.equal(['message_start', 'message_delta', 'message_stop']);
    expect(writer().whole({ choices: [{ message: { content: '' } }] })['content']).to.deep.equal([]);
  });

  it('completes arguments that were cut as the official client does', () => {
    const cases: [string, unknown][] = [
      ['', {}],
      ['{"a": "x\\"{", "b": [1, tru', { a: 'x"{', b: [1] }],
      ['{"a": 12', {}],
      ['{"a": 12, ', { a: 12 }],
      ['{"a": {"b": "c', { a: {} }],
      ['["a", "b"', ['a', 'b']],
      ['{"a": "b, c', {}],
      ['nothing', { INVALID_JSON: 'nothing' }],
      ['{"a": nul}', { INVALID_JSON: '{"a": nul}' }],
    ];
    for (const [text, value] of cases) expect(inputOf(text), text).to.deep.equal(value);
  });

  it('takes arguments that are nested too deep to come back for no JSON', () => {
    for (const text of ['['.repeat(50_000), `{"a":${'['.repeat(200)}${']'.repeat(200)}}`]) {
      expect(inputOf(text)).to.deep.equal({ INVALID_JSON: text });
    }
    const deep = `{"a":${'['.repeat(80)}`;
    expect(JSON.stringify(inputOf(deep))).to.equal(`${deep}${']'.repeat(80)}}`);
  });

  it('tells errors by the API’s types, also within a stream', () => {
    const typeOf = (error: PolarError) => anthropicMessages.errorBody(error, statusOf(error))['error'];
    expect(typeOf(new PolarError('CAPABILITY_INVALID', 'm'))).to.include({ type: 'authentication_error' });
    expect(typeOf(new PolarError('ENGINE_UNAVAILABLE', 'm'))).to.include({ type: 'overloaded_error' });
    expect(typeOf(new PolarError('BODY_TOO_LARGE', 'm'))).to.include({ type: 'request_too_large' });
    expect(typeOf(new PolarError('SESSION_CLOSED', 'm'))).to.include({ type: 'invalid_request_error' });
    const overflow = 'The input (12011 tokens) is longer than the model’s context length (4096 tokens).';
    expect(typeOf(new PolarError('ENGINE_REFUSED', overflow))).to.deep.equal({
      type: 'invalid_request_error',
      message: 'prompt is too long: 12011 tokens > 4096 maximum',
    });
    const both =
      'maximum context length of 4096 tokens. You requested a total of 4111 tokens: 21 tokens from the input ' +
      'messages and 4090 tokens for the completion.';
    expect((typeOf(new PolarError('ENGINE_REFUSED', both)) as JsonObject)['message']).to.match(
      /^input length and `max_tokens` exceed context limit: 21 \+ 4090 > 4096, /,
    );
    const [event] = eventsIn(writer().stream().failed(new PolarError('ENGINE_STREAM_CUT', 'cut')) ?? '');
    expect(event).to.deep.equal({ type: 'error', error: { type: 'api_error', message: 'cut' } });
  });
});
