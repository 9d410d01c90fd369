import { expect } from 'chai';
import { PolarError } from '../../../common/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { digestMessage } from '../../domain/messages.ts';
import type { Asked } from '../dialect.ts';
import { sealReasoning } from '../sealed-reasoning.ts';
import { anthropicMessages } from './dialect.ts';

const read = (body: JsonObject): Asked =>
  anthropicMessages.read(body, { kind: 'generate', dialect: 'anthropic-messages' }, { imageUrls: true });
const hello = [{ role: 'user', content: 'hello' }];
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

function faultsOf(body: JsonObject): string[] {
  try {
    read(body);
  } catch (error) {
    expect(error).to.be.instanceOf(PolarError).with.property('reason', 'DIALECT_INVALID');
    return (error as PolarError).fields.map(({ field }) => field);
  }
  return [];
}

describe('anthropic-messages request', () => {
  it('keeps every message in its place, and text with a cache mark the same as without', () => {
    const marked = { type: 'text', text: 'hello', cache_control: { type: 'ephemeral' } };
    const asked = read({
      system: [
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ],
      messages: [
        { role: 'user', content: [marked] },
        { role: 'system', content: 'amid' },
        { role: 'assistant', content: 'yes' },
        { role: 'user', content: 'go' },
      ],
    });
    expect(asked.messages).to.deep.equal([
      {
        role: 'system',
        content: [
          { type: 'text', text: 'one' },
          { type: 'text', text: 'two' },
        ],
      },
      { role: 'user', content: 'hello' },
      { role: 'system', content: 'amid' },
      { role: 'assistant', content: 'yes' },
      { role: 'user', content: 'go' },
    ]);
  });

  it('has no system message where nothing is said in it', () => {
    for (const system of ['', [], null])
      expect(read({ system, messages: hello }).messages).to.deep.equal(read({ messages: hello }).messages);
  });

  it('turns calls, results and thinking into those of a conversation', () => {
    const asked = read({
      messages: [
        ...hello,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 'of someone else' },
            { type: 'text', text: 'I look' },
            { type: 'tool_use', id: 'a', name: 'ls', input: { path: '.' } },
            { type: 'tool_use', id: 'b', name: 'ls', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: 'x y' },
            {
              type: 'tool_result',
              tool_use_id: 'b',
              is_error: true,
              content: [
                { type: 'text', text: 'no' },
                { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
              ],
            },
            { type: 'text', text: 'go on' },
          ],
        },
      ],
    });
    expect(asked.messages.slice(1)).to.deep.equal([
      {
        role: 'assistant',
        content: 'I look',
        reasoning_content: 'hm',
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'ls', arguments: '{"path":"."}' } },
          { id: 'b', type: 'function', function: { name: 'ls', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'x y' },
      {
        role: 'tool',
        tool_call_id: 'b',
        content: [
          { type: 'text', text: '[Tool Error] no' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
        ],
      },
      { role: 'user', content: 'go on' },
    ]);
  });

  it('finds in a signature the thinking that was left out, and believes no other', () => {
    const back = (thinking: string, signature: string) =>
      read({
        messages: [...hello, { role: 'assistant', content: [{ type: 'thinking', thinking, signature }] }],
      }).messages[1]?.['reasoning_content'];
    const seal = sealReasoning('was gedacht ist 🤔');
    expect(back('', seal)).to.equal('was gedacht ist 🤔');
    expect(back('edited', seal)).to.equal('edited');
    expect(back('', `${seal.slice(0, -4)}AAAA`)).to.equal(undefined);
    expect(back('', 'EpQBCkYIBxgC')).to.equal(undefined);
  });

  it('gives back a reply so that it is known again', () => {
    const said = {
      role: 'assistant',
      content: 'x',
      reasoning_content: 'because',
      tool_calls: [
        { id: 'a', type: 'function', function: { name: 'f', arguments: '{ "b": "\\u006c", "a": 1 }' } },
      ],
    };
    for (const args of [said.tool_calls[0]!.function.arguments, 'no json at all']) {
      const call = { id: 'a', type: 'function', function: { name: 'f', arguments: args } };
      const message = { ...said, tool_calls: [call] };
      const shown = read({ messages: hello })
        .writer('m')
        .whole({ choices: [{ message, finish_reason: 'tool_calls' }] });
      const [, back] = read({
        messages: [...hello, { role: 'assistant', content: shown['content'] ?? null }],
      }).messages;
      expect(digestMessage(back ?? null).digest).to.equal(digestMessage(message).digest);
    }
  });

  it('says the fields in the engine’s words', () => {
    const tool = { name: 'f', description: 'd', input_schema: { type: 'object' }, cache_control: {} };
    const asked = read({
      model: 'alias',
      max_tokens: 9,
      temperature: 0.5,
      top_k: 3,
      stop_sequences: ['END'],
      stream: true,
      messages: hello,
      tools: [{ ...tool, defer_loading: true }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      thinking: { type: 'adaptive', display: 'omitted' },
      output_config: { effort: 'max', format: { type: 'json_schema', schema: { type: 'object' } } },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      metadata: { user_id: 'u' },
      k: 1,
    });
    expect(asked).to.include({ model: 'alias', stream: true, n: 1 });
    expect(asked.tools).to.deep.equal([
      { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } },
    ]);
    expect(asked.fields).to.deep.equal({
      max_tokens: 9,
      temperature: 0.5,
      top_k: 3,
      stop: ['END'],
      tool_choice: 'required',
      parallel_tool_calls: false,
      chat_template_kwargs: { enable_thinking: true },
      reasoning_effort: 'high',
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'output', schema: { type: 'object' }, strict: true },
      },
    });
    expect(read({ messages: [...hello, { role: 'assistant', content: 'I begin' }] }).fields).to.deep.equal({
      continue_final_message: true,
      add_generation_prompt: false,
    });
  });

  it('shows the examples of a tool', () => {
    const tool = { name: 'f', input_schema: { type: 'object' } };
    const { tools } = read({ messages: hello, tools: [{ ...tool, input_examples: [{ a: 1 }] }] });
    expect(tools).to.deep.equal([
      { type: 'function', function: { name: 'f', parameters: { type: 'object', examples: [{ a: 1 }] } } },
    ]);
  });

  it('is refused with the field’s name', () => {
    const cases: [JsonObject, string][] = [
      [{}, 'messages'],
      [{ messages: 'x' }, 'messages'],
      [{ messages: [3] }, 'messages[0]'],
      [{ messages: [{ role: 'robot', content: 'x' }] }, 'messages[0].role'],
      [{ messages: [{ role: 'user', content: 3 }] }, 'messages[0].content'],
      [{ messages: [{ role: 'user', content: [{ type: 'audio' }] }] }, 'messages[0].content[0]'],
      [{ messages: hello, max_tokens: '9' }, 'max_tokens'],
      [{ messages: hello, temperature: -1 }, 'temperature'],
      [{ messages: hello, mcp_servers: [{ url: 'x' }] }, 'mcp_servers'],
      [{ messages: hello, container: 'c' }, 'container'],
      [
        { messages: hello, context_management: { edits: [{ type: 'compact_20260112' }] } },
        'context_management',
      ],
      [{ messages: hello, thinking: { type: 'deep' } }, 'thinking.type'],
      [{ messages: hello, tool_choice: { type: 'any' } }, 'tool_choice'],
      [{ messages: hello, tools: [{ name: 'f' }] }, 'tools[0].input_schema'],
    ];
    for (const [body, field] of cases) expect(faultsOf(body), field).to.include(field);
    expect(faultsOf({ messages: hello, mcp_servers: [], container: null })).to.deep.equal([]);
  });

  it('names the tool of the provider that is not there', () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }];
    expect(() => read({ messages: hello, tools })).to.throw(
      /tools\[0\]: web_search, web_search_20250305: .*not offered/,
    );
  });

  it('refuses results without their call, images that are none, and PDF', () => {
    const user = (...content: JsonObject[]) => ({ messages: [{ role: 'user', content }] });
    const image = (source: JsonObject) => user({ type: 'image', source });
    const at = 'messages[0].content[0]';
    expect(faultsOf(user({ type: 'tool_result', tool_use_id: 'x', content: 'y' }))).to.deep.equal([
      `${at}.tool_use_id`,
    ]);
    expect(faultsOf(image({ type: 'base64', media_type: 'image/png', data: '%%' }))).to.deep.equal([
      `${at}.source.data`,
    ]);
    expect(faultsOf(image({ type: 'base64', media_type: 'image/gif', data: PNG }))).to.deep.equal([
      `${at}.source.data`,
    ]);
    expect(faultsOf(image({ type: 'url', url: 'file:///x' }))).to.deep.equal([`${at}.source.url`]);
    expect(faultsOf(image({ type: 'url', url: 'https://x/y.png' }))).to.deep.equal([]);
    const pdf = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' };
    expect(faultsOf(user({ type: 'document', source: pdf }))).to.deep.equal([`${at}.source.type`]);
    const plain = { type: 'text', media_type: 'text/plain', data: 'body' };
    expect(read(user({ type: 'document', title: 'T', source: plain })).messages[0]?.['content']).to.equal(
      'T\nbody',
    );
  });

  it('takes tools that come amid the conversation', () => {
    const definition = { name: 'late', input_schema: { type: 'object' } };
    const asked = read({
      messages: [
        ...hello,
        {
          role: 'system',
          content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }],
        },
      ],
    });
    expect(asked.messages[1]).to.deep.equal({ role: 'system', content: 'Tool added: late' });
    expect(asked.tools).to.have.length(1);
  });
});
