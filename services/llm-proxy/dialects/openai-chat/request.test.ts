import { expect } from 'chai';
import { PolarError } from '../../../common/errors.ts';
import { type JsonObject, type JsonValue, objectOf } from '../../domain/json.ts';
import { digestMessage } from '../../domain/messages.ts';
import { Notes } from '../../domain/notes.ts';
import { samplingOf } from '../../domain/sampling.ts';
import type { Asked } from '../dialect.ts';
import { openaiChat } from './dialect.ts';

const user = { role: 'user', content: 'x' };
const calls = (...ids: string[]): JsonObject => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{ "a": 1}' } })),
});
const tool = (name = 'f'): JsonObject => ({ type: 'function', function: { name, parameters: {} } });

const MANY = 1_000;

const readNoted = (body: JsonObject, notes: Notes): Asked =>
  openaiChat.read(body, { kind: 'generate', dialect: 'openai-chat' }, { imageUrls: true }, { notes });
const read = (body: JsonObject): Asked => readNoted(body, new Notes());

/** Names of the fields that are refused. */
function faultsOf(body: JsonObject): string[] {
  try {
    read(body);
  } catch (error) {
    return (error as PolarError).fields.map(({ field }) => field);
  }
  return [];
}

describe('openai-chat messages', () => {
  it('go to the engine as the very objects that came', () => {
    const image = { type: 'image_url', image_url: { url: 'https://example.test/a.png' } };
    const messages = [
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'x' }, image] },
      { ...calls('a', 'b'), reasoning_content: 'why' },
      { role: 'tool', tool_call_id: 'b', content: 'y' },
      { role: 'system', content: 'In between.' },
      { role: 'tool', tool_call_id: 'a', content: null },
    ];
    const asked = read({ messages });
    for (const [i, message] of asked.messages.entries()) expect(message).to.equal(messages[i]);
  });

  it('ask engines for no closer look at an image than they know', () => {
    const url = 'https://example.test/a.png';
    const image = (detail: JsonValue): JsonObject => ({ type: 'image_url', image_url: { url, detail } });
    const parts = [image('original'), image(null), image('low')];
    const [message] = read({ messages: [{ role: 'user', content: parts }] }).messages;
    const bare = { type: 'image_url', image_url: { url } };
    expect(message?.['content']).to.deep.equal([image('high'), bare, image('low')]);
  });

  it('have the thinking of earlier replies by the name that all engines know', () => {
    const thought = (more: JsonObject): JsonObject => ({ role: 'assistant', content: 'a', ...more });
    const [, other, both, empty] = read({
      messages: [
        user,
        thought({ reasoning: 'why' }),
        thought({ reasoning: 'b', reasoning_content: 'a' }),
        thought({ reasoning: null }),
      ],
    }).messages;
    expect(other).to.deep.equal(thought({ reasoning_content: 'why' }));
    expect(both).to.deep.equal(thought({ reasoning: 'b', reasoning_content: 'a' }));
    expect(empty).to.deep.equal(thought({ reasoning: null }));
  });

  it('have nothing of what clients keep beside a text', () => {
    const text = { type: 'text', text: 'a' };
    const { tool_calls = null } = calls('a');
    const marked = { ...text, cache_control: { type: 'ephemeral' } };
    // As the newest agents SDK sends back what came whole, and what was streamed.
    const whole = { role: 'assistant', refusal: null, tool_calls };
    const beside: JsonObject[] = [whole, { annotations: [] }, { prompt_cache_breakpoint: {} }];
    for (const more of beside) {
      const said = { role: 'assistant', content: [{ ...text, ...more }, marked], tool_calls };
      const [, message] = read({ messages: [user, said] }).messages;
      expect(message).to.deep.equal({ ...said, content: [text, marked] });
    }
  });

  it('have the text of a refusal', () => {
    const refused = { role: 'assistant', content: null, refusal: 'No.' };
    const silent = { role: 'assistant', content: 'yes', refusal: null };
    const { messages } = read({ messages: [user, refused, silent] });
    expect(messages.map(({ content }) => content)).to.deep.equal(['x', 'No.', 'yes']);
    expect(messages[2]).to.equal(silent);
  });

  it('are refused with the field where they make no sense', () => {
    const cases: [JsonValue, string][] = [
      [[], 'messages'],
      ['x', 'messages'],
      [[{ role: 'nobody', content: 'x' }], 'messages[0].role'],
      [[{ role: 'user' }], 'messages[0].content'],
      [[{ role: 'user', content: 5 }], 'messages[0].content'],
      [[{ role: 'user', content: [{ type: 'video' }] }], 'messages[0].content[0].type'],
      [[{ role: 'user', content: [{ type: 'file' }] }], 'messages[0].content[0].type'],
      [[{ role: 'user', content: [{ type: 'text' }] }], 'messages[0].content[0].text'],
      [
        [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,??' } }] }],
        'messages[0].content[0].image_url.url',
      ],
      [[user, { role: 'tool', tool_call_id: 'a', content: 'x' }], 'messages[1].tool_call_id'],
      [[{ role: 'tool', tool_call_id: 'a', content: 'x' }, calls('a')], 'messages[0].tool_call_id'],
      [[user, { role: 'assistant', tool_calls: {} }], 'messages[1].tool_calls'],
      [[user, { role: 'assistant', audio: { id: 'a' } }], 'messages[1].audio'],
      [[{ ...calls('a'), reasoning_content: 5 }], 'messages[0].reasoning_content'],
      [
        [{ role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: {} } }] }],
        'messages[0].tool_calls[0].function.arguments',
      ],
      [
        [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: '' } }] }],
        'messages[0].tool_calls[0].id',
      ],
      [[{ role: 'function', name: 'f', content: 'x' }], 'messages[0].name'],
    ];
    for (const [messages, field] of cases) expect(faultsOf({ messages }), field).to.deep.equal([field]);
  });

  it('that came before are the very same again, but for what depends on those before them', () => {
    const custom = { id: 'a', type: 'custom', custom: { name: 'patch', input: 'x' } };
    const messages = [user, { role: 'assistant', content: null, tool_calls: [custom] }];
    const answer = { role: 'tool', tool_call_id: 'a', content: [{ type: 'refusal', refusal: 'no' }] };
    const notes = new Notes();
    const first = readNoted({ messages: [...messages, answer] }, notes);
    const second = readNoted({ messages: [...messages, answer, user] }, new Notes(notes));
    for (const [i, message] of first.messages.entries()) expect(second.messages[i]).to.equal(message);
    const without = { messages: [user, answer] };
    expect(faultsOf(without)).to.deep.equal(['messages[1].tool_call_id']);
    expect(() => readNoted(without, new Notes(notes))).to.throw('messages[1].tool_call_id');
    const wrong = { role: 'user', content: 5 };
    for (let i = 0; i < 2; i++) expect(faultsOf({ messages: [wrong] })).to.have.length(1);
  });

  it('of the legacy form answer the last call of their name, also behind what was read before', () => {
    const call = { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } };
    const answer = { role: 'function', name: 'f', content: 'x' };
    const notes = new Notes();
    readNoted({ messages: [user, call, answer] }, notes);
    const { messages } = readNoted(
      { messages: [user, call, answer, call, answer, answer] },
      new Notes(notes),
    );
    const answered = messages.map((message) => message['tool_call_id']).filter((id) => id !== undefined);
    const [first, last] = ['call_of_message_1', 'call_of_message_3'];
    expect(answered).to.deep.equal([first, last, last]);
    const other = { messages: [user, user, answer] };
    expect(() => readNoted(other, new Notes(notes))).to.throw('messages[2].name');
  });

  it('of custom tools come back as the engine said them', () => {
    const custom = { id: 'a', type: 'custom', custom: { name: 'patch', input: 'a\n"b"' } };
    const said = { name: 'patch', arguments: '{ "input": "a\\n\\u0022b\\"" }' };
    const asked = read({ messages: [{ role: 'assistant', content: null, tool_calls: [custom] }] });
    const original = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: said }],
    };
    expect(digestMessage(asked.messages[0]!).digest).to.equal(digestMessage(original).digest);
  });
});

describe('openai-chat fields', () => {
  it('are refused where their type is wrong, with the field, and where they are no members are left out', () => {
    const wrong: JsonObject = {
      temperature: 'hot',
      top_p: 2,
      max_tokens: 0,
      max_completion_tokens: 1.5,
      stop: [1],
      seed: 'x',
      logit_bias: { 5: 'x' },
      response_format: { type: 'json_schema' },
      parallel_tool_calls: 1,
      chat_template_kwargs: { chat_template: '{{ messages }}' },
      stop_token_ids: ['a'],
      stream_options: [],
      functions: {},
      modalities: ['audio'],
      web_search_options: {},
      audio: {},
    };
    for (const [field, value] of Object.entries(wrong)) {
      expect(faultsOf({ messages: [user], [field]: value }), field).to.deep.equal([field]);
    }
    const { fields } = read({
      messages: [user],
      modalities: ['text'],
      guided_regex: 'x',
      metadata: {},
      seed: -1,
    });
    expect(fields).to.deep.equal({ guided_regex: 'x', seed: -1 });
  });

  it('that only engines know go out where they say how to sample, and no others', () => {
    const known: JsonObject = {
      min_tokens: 1,
      stop_token_ids: [2],
      ignore_eos: true,
      bad_words: ['x'],
      structured_outputs: { regex: 'a' },
      chat_template_kwargs: { enable_thinking: false },
    };
    const unknown: JsonObject = {
      n_predict: 100_000,
      max_new_tokens: 100_000,
      samplers: ['temperature'],
      mirostat: 2,
      lora_path: 'other',
      custom_logit_processor: '{"callable":"8004"}',
      use_beam_search: true,
      return_token_ids: false,
      kv_transfer_params: {},
    };
    expect(read({ messages: [user], ...known, ...unknown }).fields).to.deep.equal(known);
  });

  it('that are carried are on the record', () => {
    const carried = openaiChat.features.filter(
      ({ part, support }) => part === 'fields' && support === 'carried',
    );
    const sent = Object.fromEntries(carried.map(({ name }): [string, JsonValue] => [name, 1]));
    expect(Object.keys(samplingOf(sent)).sort()).to.deep.equal(Object.keys(sent).sort());
  });

  it('name a tool only where there is one', () => {
    const named = { type: 'function', function: { name: 'f' } };
    expect(read({ messages: [user], tools: [tool()], tool_choice: named }).fields).to.deep.equal({
      tool_choice: named,
    });
    expect(read({ messages: [user], tools: [tool()], tool_choice: 'none' }).fields).to.deep.equal({
      tool_choice: 'none',
    });
    expect(faultsOf({ messages: [user], tools: [tool('g')], tool_choice: named })).to.deep.equal([
      'tool_choice.function.name',
    ]);
    expect(faultsOf({ messages: [user], tool_choice: 'some' })).to.deep.equal(['tool_choice']);
    expect(faultsOf({ messages: [user], function_call: { name: 'f' } })).to.deep.equal([
      'function_call.name',
    ]);
  });

  it('choose among no tools only where something is to be called', () => {
    for (const choice of [
      { tool_choice: 'auto' },
      { tool_choice: 'none', tools: [] },
      { function_call: 'auto' },
    ]) {
      expect(read({ messages: [user], ...choice }).fields, JSON.stringify(choice)).to.deep.equal({});
    }
    expect(faultsOf({ messages: [user], tool_choice: 'required' })).to.deep.equal(['tool_choice']);
  });

  it('show of several tools those that may be called', () => {
    const tools = [tool('f'), tool('g'), { type: 'custom', custom: { name: 'h' } }];
    const ask = (mode: string, ...allowed: JsonObject[]): JsonObject => ({
      messages: [user],
      tools,
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode, tools: allowed } },
    });
    const custom = { type: 'custom', custom: { name: 'h' } };
    const asked = read(ask('required', { type: 'function', function: { name: 'g' } }, custom));
    expect(asked.tools.map((one) => objectOf(one['function'])['name'])).to.deep.equal(['g', 'h']);
    expect(asked.fields).to.deep.equal({ tool_choice: 'required' });
    const at = 'tool_choice.allowed_tools';
    expect(faultsOf(ask('auto'))).to.deep.equal([`${at}.tools`]);
    expect(faultsOf(ask('auto', { type: 'function', function: { name: 'x' } }))).to.deep.equal([
      `${at}.tools`,
    ]);
    expect(faultsOf(ask('none', custom))).to.deep.equal([`${at}.mode`]);
  });

  it('are gone over once, however many may be called', () => {
    let reads = 0;
    const counted = () => ({
      type: 'function',
      function: {
        get name() {
          reads++;
          return 'f';
        },
      },
    });
    const tools = [...Array.from({ length: MANY }, counted), tool('z')];
    const allowed = Array.from({ length: MANY }, () => ({ type: 'function', function: { name: 'z' } }));
    const tool_choice = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: allowed } };
    expect(read({ messages: [user], tools, tool_choice }).tools).to.deep.equal([tool('z')]);
    expect(reads).to.be.within(MANY, MANY * 10);
  });

  it('refuse tools that run at the provider, by their name', () => {
    const error = (): Asked => read({ messages: [user], tools: [tool(), { type: 'web_search' }] });
    expect(error).to.throw(PolarError, 'tools[1].type: web_search runs at the provider');
    expect(faultsOf({ messages: [user], tools: [{ type: 'function' }, 1] })).to.deep.equal([
      'tools[0].function',
      'tools[1]',
    ]);
  });

  it('of the older form of tools become those of the newer', () => {
    const messages = [
      user,
      { role: 'assistant', function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: 'y' },
    ];
    const asked = read({ messages, functions: [{ name: 'f' }], function_call: { name: 'f' } });
    expect(asked.tools).to.deep.equal([{ type: 'function', function: { name: 'f' } }]);
    expect(asked.fields).to.deep.equal({ tool_choice: { type: 'function', function: { name: 'f' } } });
    const [, call, result] = asked.messages as [JsonObject, { tool_calls: { id: string }[] }, JsonObject];
    expect(result).to.deep.equal({ role: 'tool', tool_call_id: call.tool_calls[0]!.id, content: 'y' });
    expect(call).to.not.have.property('function_call');
  });
});
