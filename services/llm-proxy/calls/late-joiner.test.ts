import { expect } from 'chai';
import { dialectOf } from '../dialects/dialects.ts';
import { type JsonObject, objectOf } from '../domain/json.ts';
import { chunksOf } from '../domain/made-stream.ts';
import type { DialectName, GenerateTarget } from '../domain/paths.ts';
import { ReplyAssembler } from '../domain/reply.ts';

const HEAD = { id: 'c', object: 'chat.completion.chunk', created: 3, model: 'm' };
const named = (index: number, name: string): JsonObject => ({
  tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: '' } }],
});
const args = (index: number, text: string): JsonObject => ({
  tool_calls: [{ index, function: { arguments: text } }],
});
const DELTAS: readonly JsonObject[] = [
  { role: 'assistant', content: '' },
  { reasoning_content: 'think' },
  { reasoning_content: ' well' },
  { content: 'first ' },
  { content: 'then' },
  named(1, 'read'),
  args(1, '{"path"'),
  args(1, ':"a"}'),
  named(2, 'write'),
  args(2, '{"path":'),
  args(2, '"b"}'),
];
const chunkOf = (delta: JsonObject, finish: string | null = null): JsonObject => ({
  ...HEAD,
  choices: [{ index: 0, delta: structuredClone(delta), finish_reason: finish }],
});
const END = [
  () => chunkOf({}, 'tool_calls'),
  () => ({ ...HEAD, choices: [], usage: { prompt_tokens: 2, completion_tokens: 9, total_tokens: 11 } }),
];

const TOOLS = ['read', 'write'];
const user = [{ role: 'user', content: 'x' }];
const parameters = { type: 'object', properties: { path: { type: 'string' } } };
const REQUESTS: Readonly<Record<DialectName, JsonObject>> = {
  'openai-chat': {
    messages: user,
    tools: TOOLS.map((name) => ({ type: 'function', function: { name, parameters } })),
  },
  'openai-responses': {
    input: user,
    tools: TOOLS.map((name) => ({ type: 'function', name, parameters })),
  },
  'anthropic-messages': {
    messages: user,
    max_tokens: 9,
    tools: TOOLS.map((name) => ({ name, input_schema: parameters })),
  },
  'google-generate': {
    contents: [{ role: 'user', parts: [{ text: 'x' }] }],
    tools: [{ functionDeclarations: TOOLS.map((name) => ({ name, parameters })) }],
  },
};

function streamed(dialect: DialectName, chunks: readonly JsonObject[]): JsonObject[] {
  const target = { kind: 'generate', dialect, stream: true } as unknown as GenerateTarget;
  const writer = dialectOf(dialect)
    .read({ ...REQUESTS[dialect], stream: true }, target)
    .writer('m')
    .stream();
  const text = chunks.map((chunk) => writer.chunk(chunk)).join('') + writer.end();
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as JsonObject);
}

/** All that the events say, in the order in which it is said: by what, and the text of each put together. */
function said(events: readonly JsonObject[]): Record<string, string> {
  const texts: Record<string, string> = {};
  const walk = (value: unknown, at: string): void => {
    if (Array.isArray(value)) for (const [i, one] of value.entries()) walk(one, `${at}.${i}`);
    else if (typeof value === 'object' && value !== null) {
      const index = (value as JsonObject)['index'] ?? (value as JsonObject)['output_index'] ?? '';
      for (const [key, one] of Object.entries(value)) walk(one, `${at}[${index}].${key}`);
    } else if (
      /\.(content|reasoning_content|arguments|name|text|thinking|partial_json|delta|path)$/.test(at)
    ) {
      texts[at] = `${texts[at] ?? ''}${value ?? ''}`;
    }
  };
  for (const event of events) walk(event, String(objectOf(event)['type'] ?? ''));
  return texts;
}

describe('a request that joins a stream', () => {
  for (const dialect of Object.keys(REQUESTS) as DialectName[]) {
    it(`is told the same as the first one, wherever it joins: ${dialect}`, () => {
      const whole = said(
        streamed(dialect, [...DELTAS.map((delta) => chunkOf(delta)), ...END.map((end) => end())]),
      );
      expect(Object.values(whole).join(' ')).to.include('first then');
      for (let cut = 1; cut <= DELTAS.length; cut++) {
        const assembler = new ReplyAssembler();
        for (const delta of DELTAS.slice(0, cut)) assembler.add(structuredClone(delta));
        const choices = [{ index: 0, message: assembler.soFar, finish_reason: null }];
        const past = [...chunksOf({ ...HEAD, choices })];
        const rest = [...DELTAS.slice(cut).map((delta) => chunkOf(delta)), ...END.map((end) => end())];
        expect(said(streamed(dialect, [...past, ...rest])), `behind ${cut}`).to.deep.equal(whole);
      }
    });
  }
});
