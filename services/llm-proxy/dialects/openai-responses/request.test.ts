import { expect } from 'chai';
import { PolarError } from '../../../common/errors.ts';
import { type JsonObject, type JsonValue, objectOf } from '../../domain/json.ts';
import type { Asked } from '../dialect.ts';
import { sealReasoning } from '../sealed-reasoning.ts';
import { openaiResponses } from './dialect.ts';

const read = (body: JsonObject): Asked =>
  openaiResponses.read(body, { kind: 'generate', dialect: 'openai-responses' }, { imageUrls: true });
const messagesOf = (input: JsonValue): readonly JsonObject[] => read({ input }).messages;

/** Names of the fields that are refused. */
function faultsOf(body: JsonObject): string[] {
  try {
    read(body);
  } catch (error) {
    return (error as PolarError).fields.map(({ field }) => field);
  }
  return [];
}

const call = (id: string): JsonObject => ({
  type: 'function_call',
  call_id: id,
  name: 'f',
  arguments: '{ "a": 1}',
});
const calledAs = (id: string): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: '{ "a": 1}' },
});

/** The items of a streamed reply: of text, reasoning and a call by their letters, in this order. */
function streamedItems(order: string, id = 'chatcmpl-7'): JsonObject[] {
  const deltas: Record<string, JsonObject> = {
    t: { content: 'x' },
    r: { reasoning_content: 'why' },
    c: { tool_calls: [{ index: 0, ...calledAs('a') }] },
  };
  const stream = read({ input: 'x' }).writer('m').stream();
  for (const letter of order) stream.chunk({ id, choices: [{ delta: deltas[letter] ?? {} }] });
  const [, last = ''] = /^event: response\.completed\ndata: (.*)$/m.exec(stream.end()) ?? [];
  return (JSON.parse(last) as { response: { output: JsonObject[] } }).response.output;
}

describe('openai-responses input', () => {
  it('is a conversation, in which nothing is moved', () => {
    const image = { type: 'input_image', image_url: 'https://example.test/a.png', detail: 'original' };
    const asked = read({
      instructions: 'Be brief.',
      input: [
        { role: 'developer', content: 'd' },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'u' }, image] },
        { role: 'system', content: [{ type: 'input_text', text: 's' }] },
      ],
    });
    expect(asked.messages).to.deep.equal([
      { role: 'system', content: 'Be brief.' },
      { role: 'developer', content: 'd' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'u' },
          { type: 'image_url', image_url: { url: 'https://example.test/a.png', detail: 'high' } },
        ],
      },
      { role: 'system', content: 's' },
    ]);
    expect(messagesOf('x')).to.deep.equal([{ role: 'user', content: 'x' }]);
  });

  it('puts the items of one reply together, and keeps two replies apart', () => {
    const reasoning = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'why' }] };
    const said = (text: string): JsonObject => ({
      type: 'message',
      role: 'assistant',
      content: [
        { type: 'output_text', text },
        { type: 'output_text', text: '!' },
      ],
    });
    const output = { type: 'function_call_output', call_id: 'a', output: 'one' };
    const messages = messagesOf([reasoning, said('so'), call('a'), call('b'), output, said('x'), said('y')]);
    expect(messages).to.deep.equal([
      {
        role: 'assistant',
        content: 'so!',
        reasoning_content: 'why',
        tool_calls: [calledAs('a'), calledAs('b')],
      },
      { role: 'tool', tool_call_id: 'a', content: 'one' },
      { role: 'assistant', content: 'x!' },
      { role: 'assistant', content: 'y!' },
    ]);
    const [first, second] = messagesOf([call('a'), reasoning, call('b')]);
    expect(first).to.deep.equal({ role: 'assistant', content: null, tool_calls: [calledAs('a')] });
    expect(second).to.include({ reasoning_content: 'why' });
  });

  it('puts a streamed reply together in whichever order it was said', () => {
    const output = { type: 'function_call_output', call_id: 'a', output: 'one' };
    const tool_calls = [calledAs('a')];
    for (const order of ['trc', 'tcr', 'rct', 'crt', 'ctr']) {
      const said = { role: 'assistant', content: 'x', reasoning_content: 'why', tool_calls };
      expect(messagesOf([...streamedItems(order), output])[0], order).to.deep.equal(said);
    }
    // Codex keeps no ids.
    const nameless = streamedItems('ct').map(({ id: _, ...item }) => item);
    const [first, second] = messagesOf([...nameless, output]);
    expect(first).to.deep.equal({ role: 'assistant', content: 'x', tool_calls });
    expect(second).to.include({ role: 'tool' });
    const [one, other] = [streamedItems('t', 'chatcmpl-1'), streamedItems('rt', 'chatcmpl-2')];
    expect(messagesOf([...one, ...other])).to.have.length(2);
  });

  it('is one message of what LangChain makes of a streamed reply', () => {
    const output = { type: 'function_call_output', call_id: 'a', output: 'one' };
    const message = (text: string): JsonObject => ({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text, annotations: [] }],
    });
    const calling = { ...call('a'), id: 'fc_7_2' };
    for (const summary of [[], [{ type: 'summary_text', text: 'why' }]]) {
      const thought = { type: 'reasoning', id: 'rs_7_0', summary, content: [], status: 'in_progress' };
      const sealed = {
        type: 'reasoning',
        id: 'rs_7_0',
        summary: [],
        encrypted_content: sealReasoning('why'),
      };
      const input = [thought, message('x'), calling, sealed, message(''), output];
      expect(messagesOf(input)).to.deep.equal([
        { role: 'assistant', content: 'x', reasoning_content: 'why', tool_calls: [calledAs('a')] },
        { role: 'tool', tool_call_id: 'a', content: 'one' },
      ]);
    }
  });

  it('makes of what came before the very same messages again', () => {
    const reasoning = { type: 'reasoning', summary: [], encrypted_content: sealReasoning('why') };
    const input = [{ role: 'user', content: 'x' }, reasoning, call('a')];
    const output = { type: 'function_call_output', call_id: 'a', output: 'one' };
    const first = messagesOf([...input, output]);
    const second = messagesOf([...input, output, { role: 'user', content: 'y' }]);
    for (const [i, message] of first.entries()) expect(second[i]).to.equal(message);
    const [, longer] = messagesOf([...input, call('b'), output]);
    expect(longer?.['tool_calls']).to.deep.equal([calledAs('a'), calledAs('b')]);
    expect(faultsOf({ input: [output] })).to.deep.equal(['input[0].call_id']);
  });

  it('reads reasoning from what was sealed, then from its text, then from its summary', () => {
    const summary = [{ type: 'summary_text', text: 's' }];
    const content = [{ type: 'reasoning_text', text: 'c' }];
    const thought = (item: JsonObject): JsonValue =>
      messagesOf([{ type: 'reasoning', ...item }])[0]?.['reasoning_content'] ?? null;
    const sealed = sealReasoning('the very\ntext 👩‍👩‍👧');
    expect(thought({ summary, content, encrypted_content: sealed })).to.equal('the very\ntext 👩‍👩‍👧');
    expect(thought({ summary, content, encrypted_content: 'foreign' })).to.equal('c');
    expect(thought({ summary, content: null, encrypted_content: 'foreign' })).to.equal('s');
    const unreadable = { input: [{ type: 'reasoning', summary: [], encrypted_content: 'foreign' }] };
    expect(faultsOf(unreadable)).to.deep.equal(['input[0].encrypted_content']);
  });

  it('is refused with the field where it makes no sense', () => {
    const cases: [JsonValue, string][] = [
      [5, 'input'],
      [[], 'input'],
      [['x'], 'input[0]'],
      [[{}], 'input[0].type'],
      [[{ type: 'item_reference', id: 'x' }], 'input[0].id'],
      [[{ type: 'item_reference', id: 'msg_1_0' }], 'input[0].id'],
      [[{ type: 'item_reference' }], 'input[0].id'],
      [[{ id: 'msg_1_0' }], 'input[0].id'],
      [[{ type: 'local_shell_call' }], 'input[0].type'],
      [[{ role: 'tool', content: 'x' }], 'input[0].role'],
      [[{ role: 'user', content: null }], 'input[0].content'],
      [[{ role: 'user', content: [{ type: 'input_file' }] }], 'input[0].content[0].type'],
      [[{ role: 'user', content: [{ type: 'input_image', file_id: 'x' }] }], 'input[0].content[0].image_url'],
      [[{ type: 'function_call', call_id: 'a', name: 'f' }], 'input[0].arguments'],
      [[{ type: 'custom_tool_call', call_id: 'a', name: 'f' }], 'input[0].input'],
      [[{ type: 'function_call_output', call_id: 'a', output: 'x' }], 'input[0].call_id'],
      [[call('a'), { type: 'function_call_output', call_id: 'b', output: 'x' }], 'input[1].call_id'],
    ];
    for (const [input, field] of cases) expect(faultsOf({ input }), field).to.deep.equal([field]);
  });
});

describe('openai-responses tools', () => {
  const input = 'x';

  it('are known to the engine by one name, and to the harness by its own', () => {
    const spawn = { type: 'function', name: 'spawn', parameters: {}, strict: null };
    const tools = [
      { type: 'namespace', name: 'agents', tools: [spawn] },
      { type: 'custom', name: 'patch' },
    ];
    const asked = read({
      input,
      tools,
      tool_choice: { type: 'function', namespace: 'agents', name: 'spawn' },
    });
    expect(asked.tools[0]).to.deep.equal({
      type: 'function',
      function: { name: 'agents__spawn', parameters: {} },
    });
    expect(asked.fields).to.deep.equal({
      tool_choice: { type: 'function', function: { name: 'agents__spawn' } },
    });
    const toolCalls = [
      { id: 'c1', function: { name: 'agents__spawn', arguments: '{ }' } },
      { id: 'c2', function: { name: 'patch', arguments: '{"input": "x"}' } },
      { function: { name: 'unknown', arguments: '' } },
    ];
    const message = { content: null, tool_calls: toolCalls };
    const { output } = asked.writer('m').whole({ id: 'chatcmpl-7', choices: [{ message }] }) as {
      output: JsonObject[];
    };
    expect(output[0]).to.include({
      type: 'function_call',
      namespace: 'agents',
      name: 'spawn',
      arguments: '{ }',
    });
    expect(output[1]).to.include({ type: 'custom_tool_call', name: 'patch', input: 'x' });
    expect(output[2]).to.include({ name: 'unknown', call_id: 'call_7_2' });
    const items = output.map(({ status: _, ...item }) => item);
    expect(read({ input: items, tools }).messages[0]).to.have.deep.property('tool_calls', [
      { id: 'c1', type: 'function', function: { name: 'agents__spawn', arguments: '{ }' } },
      { id: 'c2', type: 'function', function: { name: 'patch', arguments: '{"input":"x"}' } },
      { id: 'call_7_2', type: 'function', function: { name: 'unknown', arguments: '' } },
    ]);
  });

  it('are shown where they may be called', () => {
    const tools = [
      { type: 'function', name: 'f' },
      { type: 'namespace', name: 'n', tools: [{ type: 'custom', name: 'g' }] },
    ];
    const choice = (...allowed: JsonObject[]) => ({ type: 'allowed_tools', mode: 'auto', tools: allowed });
    const tool_choice = choice({ type: 'custom', namespace: 'n', name: 'g' });
    const asked = read({ input, tools, tool_choice });
    expect(asked.tools.map((one) => objectOf(one['function'])['name'])).to.deep.equal(['n__g']);
    expect(asked.fields).to.deep.equal({ tool_choice: 'auto' });
    const faulty = { input, tools, tool_choice: choice({ type: 'mcp', server_label: 's' }) };
    expect(faultsOf(faulty)).to.deep.equal(['tool_choice.tools']);
  });

  it('may not be chosen where there are none, and engines hear nothing of a choice then', () => {
    // Codex asks so for a summary; vLLM refuses a choice without tools.
    const asked = { input, tool_choice: 'auto', parallel_tool_calls: false };
    for (const none of [{}, { tools: null }, { tools: [] }])
      expect(read({ ...asked, ...none }).fields).to.deep.equal({});
    expect(read({ input, tool_choice: 'none' }).fields).to.deep.equal({});
    expect(faultsOf({ input, tool_choice: 'required' })).to.deep.equal(['tool_choice']);
  });

  it('are refused where they run at the provider, by their name', () => {
    const types = [
      'web_search',
      'file_search',
      'code_interpreter',
      'mcp',
      'computer',
      'image_generation',
      'local_shell',
    ];
    for (const type of types)
      expect(() => read({ input, tools: [{ type }] })).to.throw(PolarError, `tools[0].type: ${type}`);
    const twice = { type: 'function', name: 'f' };
    expect(faultsOf({ input, tools: [twice, twice] })).to.deep.equal(['tools[1].name']);
    expect(faultsOf({ input, tool_choice: { type: 'web_search' } })).to.deep.equal(['tool_choice']);
  });
});

describe('openai-responses fields', () => {
  it('are told to the engine in its words', () => {
    const asked = read({
      input: 'x',
      max_output_tokens: 5,
      temperature: 0.5,
      reasoning: { effort: 'low', summary: 'auto' },
      text: { format: { type: 'json_schema', name: 's', schema: {}, strict: true }, verbosity: 'low' },
      parallel_tool_calls: false,
      tools: [{ type: 'function', name: 'f' }],
      store: true,
      truncation: 'auto',
      unheard_of: 1,
    });
    expect(asked.fields).to.deep.equal({
      max_tokens: 5,
      temperature: 0.5,
      reasoning_effort: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 's', schema: {}, strict: true } },
      parallel_tool_calls: false,
    });
  });

  it('are refused where they ask for what is not offered', () => {
    const wrong: JsonObject = {
      previous_response_id: 'resp_1',
      conversation: 'c',
      prompt: { id: 'p' },
      background: true,
      context_management: [],
      instructions: 5,
      max_output_tokens: 'many',
      reasoning: 'much',
      chat_template_kwargs: { chat_template: '{{ messages }}' },
      tools: {},
    };
    for (const [field, value] of Object.entries(wrong)) {
      expect(faultsOf({ input: 'x', [field]: value }), field).to.deep.equal([field]);
    }
    expect(faultsOf({ input: 'x', text: { format: { type: 'json_schema' } } })).to.deep.equal([
      'text.format',
    ]);
    expect(faultsOf({ input: 'x', background: false, previous_response_id: null })).to.deep.equal([]);
  });
});
