// What a harness gets of a reply that the engine takes apart: in token mode the same as in text mode. What the model of random
// weights is to say is forced by a grammar.
import { expect } from 'chai';
import { readEvents } from '../../support/llm-proxy.ts';
import { Conversation } from '../conversation.ts';
import type { Mode, Site } from '../site.ts';

const TURN_MS = 60_000;
const TOOLS = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }];
const CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "b"}}\n</tool_call>';
const saying = (text: string): object => ({ structured_outputs: { choice: [text] } });
const schema = { type: 'json_schema', json_schema: { name: 's', schema: { const: 'yes' } } };
const STOPPING = { ...saying('Again STOP here.'), stop: ['STOP'] };

const CASES: Record<string, object> = {
  'a text': saying('Hello again.'),
  'a text that a limit cut': { max_tokens: 6 },
  'a text that ends at a stop string': STOPPING,
  'a text that ends with a stop string': { ...STOPPING, include_stop_str_in_output: true },
  'a text that ends at an id': { stop_token_ids: Array.from({ length: 1_000 }, (_, i) => 1_000 + i) },
  'JSON of a schema': { response_format: schema },
  'a tool call': { tools: TOOLS, ...saying(CALL) },
  'one of two tool calls': { tools: TOOLS, ...saying(`${CALL}\n${CALL}`), parallel_tool_calls: false },
  'tool calls that are required': { tools: TOOLS, tool_choice: 'required' },
  'a tool call by name': { tools: TOOLS, tool_choice: { type: 'function', function: { name: 'f' } } },
  nothing: { logit_bias: { 2: 100 } },
};

export function parsed(siteOf: (mode: Mode) => Site): void {
  for (const [name, fields] of Object.entries(CASES)) {
    for (const stream of [false, true]) {
      it(`is told ${name} in token mode as in text mode (${stream ? 'streamed' : 'whole'})`, async () => {
        const text = await said(siteOf('text'), fields, stream);
        expect(await said(siteOf('token'), fields, stream)).to.deep.equal(text);
        if (name.startsWith('JSON')) expect(JSON.parse(text.content)).to.equal('yes');
      }).timeout(TURN_MS);
    }
  }
}

interface Said {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly unknown[];
  readonly finish: unknown;
}

/** The second turn of a session. The first one is a single token, so that its ids are the same in each mode. */
async function said({ proxy, mode }: Site, fields: object, stream: boolean): Promise<Said> {
  const conversation = await Conversation.start(proxy);
  const tools = 'tools' in fields ? { tools: TOOLS } : {};
  const plain = { temperature: 0, max_tokens: 200, chat_template_kwargs: { enable_thinking: false } };
  conversation.messages.push({ role: 'user', content: 'Say a.' });
  const first = await conversation.call({ ...plain, ...tools, ...saying('a') });
  expect(first.status).to.equal(200);
  conversation.messages.push({ role: 'assistant', content: 'a' }, { role: 'user', content: 'And now?' });
  const answer = await conversation.call({ ...plain, ...fields, stream });
  expect(answer.status).to.equal(200);
  const events = stream ? (await readEvents(answer)).events.slice(0, -1) : [await answer.text()];
  const choices = events.flatMap((event) => (JSON.parse(event) as { choices: Choice[] }).choices);
  const { record } = await conversation.last();
  expect(record).to.include({ mode, drift: '' });
  return joined(choices);
}

interface Choice {
  readonly message?: Part;
  readonly delta?: Part;
  readonly finish_reason: string | null;
}

interface Part {
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly {
    readonly index?: number;
    readonly function: { readonly name?: string; readonly arguments?: string };
  }[];
}

/** A whole choice, or the parts of one that was streamed. */
function joined(choices: readonly Choice[]): Said {
  const parts = choices.map(({ message, delta }) => message ?? delta ?? {});
  const calls: { name: string; text: string }[] = [];
  for (const { tool_calls = [] } of parts) {
    for (const [i, { index = i, function: called }] of tool_calls.entries()) {
      calls[index] ??= { name: called.name ?? '', text: '' };
      calls[index].text += called.arguments ?? '';
    }
  }
  return {
    content: parts.map(({ content }) => content ?? '').join(''),
    reasoning: parts.map(({ reasoning_content: thought }) => thought ?? '').join(''),
    // Whole replies have their arguments written anew.
    calls: calls.map(({ name, text }) => [name, JSON.parse(text)]),
    finish: choices.find(({ finish_reason: word }) => word !== null)?.finish_reason,
  };
}
