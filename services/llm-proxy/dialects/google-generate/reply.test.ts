import { expect } from 'chai';
import { PolarError } from '../../../common/errors.ts';
import { arrayOf, type JsonObject, objectOf } from '../../domain/json.ts';
import { statusOf } from '../../http/status.ts';
import type { ReplyWriter } from '../dialect.ts';
import { openReasoning } from '../sealed-reasoning.ts';
import { googleGenerate } from './dialect.ts';

const contents = [{ role: 'user', parts: [{ text: 'x' }] }];

const writer = (generationConfig: JsonObject = {}, events = true): ReplyWriter =>
  googleGenerate
    .read(
      { contents, generationConfig },
      { kind: 'generate', dialect: 'google-generate', stream: true, events },
    )
    .writer('alias');

const chunk = (delta: JsonObject, finish: string | null = null, index = 0): JsonObject => ({
  id: 'chatcmpl-7',
  choices: [{ index, delta, finish_reason: finish }],
});
const piece = (index: number, made: JsonObject, more: JsonObject = {}): JsonObject => ({
  tool_calls: [{ index, function: made, ...more }],
});

function streamed(write: ReplyWriter, chunks: JsonObject[]): JsonObject[] {
  const stream = write.stream();
  const text = chunks.map((one) => stream.chunk(one)).join('') + stream.end();
  const events = text.split('\n\n').filter((event) => event !== '');
  return events.map((event) => JSON.parse(event.slice('data: '.length)) as JsonObject);
}

const firstOf = (response: JsonObject | undefined): JsonObject =>
  objectOf(arrayOf(response?.['candidates'])[0]);
const partsOf = (response: JsonObject | undefined): JsonObject[] =>
  (firstOf(response)['content'] as { parts: JsonObject[] }).parts;

describe('google-generate reply', () => {
  it('has the text of a refusal', () => {
    const said = { content: null, refusal: 'No.' };
    const whole = writer().whole({ choices: [{ message: said, finish_reason: 'stop' }] });
    expect(partsOf(whole)).to.deep.equal([{ text: 'No.' }]);
    const [first] = streamed(writer(), [chunk(said), chunk({}, 'stop')]);
    expect(partsOf(first)).to.deep.equal([{ text: 'No.' }]);
  });

  it('has the numbers of a call as they were sampled, whole and streamed', () => {
    const made = { name: 'f', arguments: '{"id":1234567890123456789,"s":[1.50,-0,1e3,7]}' };
    const tool_calls = [{ id: 'a', function: made }];
    const whole = writer().whole({ choices: [{ message: { tool_calls }, finish_reason: 'tool_calls' }] });
    const stream = writer().stream();
    const pieces = [chunk(piece(0, made, { id: 'a' })), chunk({}, 'tool_calls')];
    const text = pieces.map((one) => stream.chunk(one)).join('') + stream.end();
    for (const reply of [JSON.stringify(whole), text]) expect(reply).to.include(`"args":${made.arguments}`);
  });

  it('takes arguments that are no object for malformed', () => {
    for (const args of ['1.0', '12345678901234567890', '[1.0]', '"a"', 'null']) {
      const tool_calls = [{ id: 'a', function: { name: 'f', arguments: args } }];
      const whole = writer().whole({ choices: [{ message: { tool_calls }, finish_reason: 'tool_calls' }] });
      expect(firstOf(whole)).to.include({ finishReason: 'MALFORMED_FUNCTION_CALL' });
    }
  });

  it('streams thoughts and text, then whole calls with what was thought', () => {
    const responses = streamed(writer({ thinkingConfig: { includeThoughts: true } }), [
      chunk({ role: 'assistant', content: '' }),
      chunk({ reasoning_content: 'so' }),
      chunk({ content: 'text' }),
      chunk(piece(0, { name: 'f', arguments: '{ "a"' }, { id: 'a' })),
      chunk(piece(0, { arguments: ':1}' })),
      chunk(piece(1, { name: 'g', arguments: '' }, { id: 'b' })),
      chunk({}, 'tool_calls'),
      {
        choices: [],
        usage: {
          prompt_tokens: 5,
          completion_tokens: 9,
          prompt_tokens_details: { cached_tokens: 4 },
          completion_tokens_details: { reasoning_tokens: 2 },
        },
      },
    ]);
    expect(responses).to.have.length(3);
    expect(partsOf(responses[0])).to.deep.equal([{ text: 'so', thought: true }]);
    expect(partsOf(responses[1])).to.deep.equal([{ text: 'text' }]);
    const [first, second] = partsOf(responses[2]);
    expect(first?.['functionCall']).to.deep.equal({ id: 'a', name: 'f', args: { a: 1 } });
    expect(openReasoning(String(first?.['thoughtSignature']))).to.equal('so');
    expect(second).to.deep.equal({ functionCall: { id: 'b', name: 'g', args: {} } });
    expect(firstOf(responses[2])).to.include({ finishReason: 'STOP', index: 0 });
    expect(responses[2]).to.deep.include({
      modelVersion: 'alias',
      usageMetadata: {
        promptTokenCount: 5,
        candidatesTokenCount: 7,
        totalTokenCount: 14,
        cachedContentTokenCount: 4,
        thoughtsTokenCount: 2,
      },
    });
  });

  it('keeps several candidates apart', () => {
    const responses = streamed(writer(), [
      chunk({ content: 'one' }, null, 0),
      chunk({ content: 'two' }, null, 1),
      chunk({}, 'length', 1),
      chunk({}, 'stop', 0),
    ]);
    const last = responses.at(-1)?.['candidates'] as JsonObject[];
    expect(last.map(({ index, finishReason }) => [index, finishReason])).to.deep.equal([
      [0, 'STOP'],
      [1, 'MAX_TOKENS'],
    ]);
  });

  it('fails calls that are no objects, and leaves out one that was cut', () => {
    const withCalls = (finish_reason: string, ...texts: string[]) => {
      const tool_calls = texts.map((text, i) => ({ id: `c${i}`, function: { name: 'f', arguments: text } }));
      return writer().whole({ choices: [{ message: { content: null, tool_calls }, finish_reason }] });
    };
    const malformed = withCalls('tool_calls', '{}', '{"a":');
    expect(partsOf(malformed)).to.deep.equal([]);
    expect(firstOf(malformed)).to.include({
      finishReason: 'MALFORMED_FUNCTION_CALL',
      finishMessage: 'Malformed function call: f({"a":)',
    });
    const cut = withCalls('length', '{}', '{"a":');
    expect(partsOf(cut)).to.deep.equal([{ functionCall: { id: 'c0', name: 'f', args: {} } }]);
    expect(firstOf(cut)).to.include({ finishReason: 'MAX_TOKENS' });
  });

  it('is read whole by Gemini CLI, also after silence and with odd ends of lines', () => {
    // The pattern by which its client takes events from what has come.
    const event = /^\s*data: (.*)(?:\n\n|\r\r|\r\n\r\n)/;
    const stream = writer().stream();
    let left = stream.keepAlive() + stream.keepAlive() + stream.chunk(chunk({ content: 'a\u2028b' }));
    left += stream.keepAlive() + stream.end() + stream.keepAlive();
    const texts: JsonObject[][] = [];
    for (let found = event.exec(left); found !== null; found = event.exec(left)) {
      texts.push(partsOf(JSON.parse(found[1] ?? '') as JsonObject));
      left = left.slice(found[0].length);
    }
    expect(texts).to.deep.equal([[{ text: 'a\u2028b' }], [{ text: '' }]]);
    expect(left.trim()).to.equal('');
  });

  it('is one JSON array where no events were asked for, also when it is silent or breaks', () => {
    const whole = writer({}, false).stream();
    const text = whole.keepAlive() + whole.chunk(chunk({ content: 'a' })) + whole.keepAlive() + whole.end();
    expect((JSON.parse(text) as JsonObject[]).map((one) => Object.keys(one))).to.have.length(2);
    expect(whole.contentType).to.match(/^application\/json/);
    for (const before of [[], [chunk({ content: 'a' })]]) {
      const broken = writer({}, false).stream();
      const cut = before.map((one) => broken.chunk(one)).join('');
      const all = JSON.parse(cut + broken.failed(new PolarError('ENGINE_STREAM_CUT', 'cut'))) as JsonObject[];
      expect(all.at(-1)).to.deep.equal({ error: { code: 502, message: 'cut', status: 'UNAVAILABLE' } });
    }
  });

  it('tells errors by the API’s statuses', () => {
    const bodyOf = (error: PolarError) => googleGenerate.errorBody(error, statusOf(error))['error'];
    expect(bodyOf(new PolarError('CAPABILITY_INVALID', 'm'))).to.deep.equal({
      code: 401,
      message: 'm',
      status: 'UNAUTHENTICATED',
    });
    expect(bodyOf(new PolarError('ENGINE_UNAVAILABLE', 'm', { retryAfterMs: 1_500 }))).to.deep.include({
      status: 'UNAVAILABLE',
      details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1.5s' }],
    });
    const fields = [{ field: 'contents', description: 'd' }];
    expect(bodyOf(new PolarError('DIALECT_INVALID', 'm', { fields }))).to.deep.include({
      status: 'INVALID_ARGUMENT',
      details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: fields }],
    });
    const overflow = 'request (9031 tokens) exceeds the available context size (4096 tokens)';
    expect(bodyOf(new PolarError('ENGINE_REFUSED', overflow))).to.include({
      message: 'The input token count (9031) exceeds the maximum number of tokens allowed (4096).',
    });
  });
});
