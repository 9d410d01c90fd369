import { expect } from 'chai';
import { Bytes } from '../domain/bytes.ts';
import { engineBody } from '../domain/engine-body.ts';
import { engineText } from '../domain/engine-text.ts';
import type { JsonObject } from '../domain/json.ts';
import { CONVERSATION_IN, type KnownBody, readBody } from '../domain/known-body.ts';
import type { DialectName } from '../domain/paths.ts';
import { samplingOf } from '../domain/sampling.ts';
import { settingsKey } from '../domain/template-settings.ts';
import type { Asked } from './dialect.ts';
import { dialectOf, readRequest } from './dialects.ts';

/** Of 64 bits, of more digits than a double has, and such as JavaScript writes otherwise. */
const NUMBERS = [
  '18446744073709551615',
  '-9223372036854775807',
  '123456789.123456789',
  '1e400',
  '1.0',
  '0.50',
  '2E3',
];
const ALL = `[${NUMBERS.join(', ')}]`;
const SCHEMA = `{"type": "object", "properties": {"id": {"type": "integer", "maximum": ${NUMBERS[0]}, "enum": ${ALL}}}}`;

interface Sent {
  readonly asked: Asked;
  readonly body: JsonObject;
  /** As the engine gets it. */
  readonly text: string;
}

function send(
  dialect: DialectName,
  text: string,
  ...earlier: KnownBody[]
): Sent & { readonly known: KnownBody } {
  const came = new Bytes([Buffer.from(text)]);
  const { body: known } = readBody(came, CONVERSATION_IN[dialect], earlier);
  const target = { kind: 'generate', dialect, model: 'm', stream: false } as const;
  const { asked } = readRequest(dialectOf(dialect), known.value as JsonObject, target, { imageUrls: false });
  const body = engineBody(asked, 'served', {}, undefined);
  return { asked, body, known, text: Buffer.concat(engineText(body, known.source)).toString() };
}

/** How often the numbers stand in a text, all of them in a row. */
const timesIn = (text: string): number =>
  text.replaceAll('\\', '').split(`[${NUMBERS.join(',')}]`).length - 1;

const FUNCTION = `{"name": "f", "parameters": ${SCHEMA}}`;

const REQUESTS: Readonly<Record<DialectName, { readonly text: string; readonly times: number }>> = {
  'openai-chat': {
    times: 3,
    text: `{"temperature": 1.0, "n": 1.0, "messages": [{"role": "user", "content": "x"}],
      "tools": [{"type": "function", "function": ${FUNCTION}}],
      "response_format": {"type": "json_schema", "json_schema": {"name": "o", "schema": ${SCHEMA}}},
      "chat_template_kwargs": {"numbers": ${ALL}}, "logit_bias": {"7": -100.0}, "stop_token_ids": [1.0]}`,
  },
  'openai-responses': {
    times: 2,
    text: `{"temperature": 1.0, "input": "x", "tools": [{"type": "function", "name": "f", "parameters": ${SCHEMA}}],
      "text": {"format": {"type": "json_schema", "name": "o", "schema": ${SCHEMA}}}}`,
  },
  'anthropic-messages': {
    times: 3,
    text: `{"max_tokens": 1.0, "temperature": 1.0, "tools": [{"name": "f", "input_schema": ${SCHEMA}}],
      "output_config": {"format": {"type": "json_schema", "schema": ${SCHEMA}}},
      "messages": [{"role": "user", "content": "x"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"all": ${ALL}}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "y"}]}]}`,
  },
  'google-generate': {
    times: 5,
    text: `{"generationConfig": {"temperature": 1.0, "candidateCount": 1.0, "responseSchema": ${SCHEMA},
        "thinkingConfig": {"thinkingBudget": 0.0}},
      "tools": [{"functionDeclarations": [${FUNCTION}, {"name": "g", "parametersJsonSchema": ${SCHEMA}}]}],
      "contents": [{"parts": [{"text": "x"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"all": ${ALL}}}}]},
        {"parts": [{"functionResponse": {"name": "f", "response": {"all": ${ALL}}}}]}]}`,
  },
};

for (const [dialect, { text, times }] of Object.entries(REQUESTS) as [
  DialectName,
  { text: string; times: number },
][]) {
  describe(`numbers of ${dialect} requests`, () => {
    it('come to the engine as they were sent, where the proxy does not read them itself', () => {
      const sent = send(dialect, text);
      expect(timesIn(sent.text)).to.equal(times);
      expect(sent.body['temperature'] ?? 1).to.equal(1);
      expect(sent.asked.n).to.equal(1);
    });

    it('are the same where the body goes on from an earlier one', () => {
      const first = send(dialect, text);
      expect(send(dialect, text.replace('1.0', '1.00'), first.known).text).to.equal(first.text);
    });

    it('are recorded as numbers', () => {
      const { body } = send(dialect, text);
      const { logit_bias: bias, ...others } = samplingOf(body);
      expect(JSON.parse(JSON.stringify(samplingOf(body)))).to.deep.equal({
        ...others,
        ...(bias !== undefined && { logit_bias: bias }),
      });
      expect(settingsKey(samplingOf(body))).to.equal(settingsKey(body));
    });
  });
}

describe('numbers of requests', () => {
  const faultsOf = (text: string): string => {
    try {
      send('google-generate', text);
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };

  it('are no objects, however many digits they have', () => {
    const call = (args: string): string =>
      `{"contents": [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": ${args}}}]}]}`;
    expect(faultsOf(call('{}'))).to.equal('');
    expect(faultsOf(call('18446744073709551615'))).to.contain('args: must be an object');
  });

  it('that are read are checked as before', () => {
    const config = (tokens: string): string =>
      `{"contents": [{"parts": [{"text": "x"}]}], "generationConfig": {"maxOutputTokens": ${tokens}}}`;
    expect(faultsOf(config('16.0'))).to.equal('');
    expect(faultsOf(config('18446744073709551615'))).to.contain('maxOutputTokens: must be a whole number');
  });

  it('of 64 bits may be strings, as Google’s API writes them', () => {
    const schema = '{"type": "ARRAY", "minItems": "9007199254740993", "maxItems": "many"}';
    const { text } = send(
      'google-generate',
      `{"contents": [{"parts": [{"text": "x"}]}], "generationConfig": {"responseSchema": ${schema}}}`,
    );
    expect(text).to.contain('"minItems":9007199254740993,"maxItems":"many"');
  });

  it('nested very deep are told of as such', () => {
    const deep = `${'['.repeat(50_000)}1.0${']'.repeat(50_000)}`;
    expect(faultsOf(`{"contents": ${deep}}`)).to.contain('contents: must not be nested deeper');
  });
});
