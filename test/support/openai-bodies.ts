// Real requests of OpenAI's dialects, as harnesses send them.
import type { JsonObject } from '../../services/llm-proxy/domain/json.ts';
import { PIXEL } from './generated.ts';

const IMAGE = `data:image/png;base64,${PIXEL}`;
const PARAMETERS = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };

export const CHAT_BODIES: readonly JsonObject[] = [
  {
    model: 'alias',
    stream: true,
    stream_options: { include_usage: true },
    temperature: 0.2,
    top_p: 0.95,
    max_tokens: 4096,
    stop: ['END'],
    messages: [
      { role: 'system', content: 'You write code.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: IMAGE } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'I look.',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'read', arguments: '{"path": "a"}' } },
          { id: 'c2', type: 'custom', custom: { name: 'patch', input: '*** Begin' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
      {
        role: 'tool',
        tool_call_id: 'c2',
        content: [{ type: 'text', text: 'two' }],
        __copilotMessageSource: 'x',
      },
    ],
    tools: [
      { type: 'function', function: { name: 'read', description: 'Read.', parameters: PARAMETERS } },
      {
        type: 'custom',
        custom: {
          name: 'patch',
          format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "x"' } },
        },
      },
    ],
    tool_choice: 'auto',
    parallel_tool_calls: true,
  },
  {
    model: 'alias',
    n: 2,
    logprobs: true,
    top_logprobs: 2,
    max_completion_tokens: 10,
    messages: [
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: 'x', name: 'someone' },
      { role: 'assistant', content: 'y', refusal: null, function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: 'z' },
    ],
    functions: [{ name: 'f', parameters: PARAMETERS }],
    function_call: { name: 'f' },
    response_format: {
      type: 'json_schema',
      json_schema: { name: 's', schema: { type: 'object' }, strict: true },
    },
    logit_bias: { 5: 1 },
    metadata: { a: 'b' },
  },
];

export const RESPONSES_BODIES: readonly JsonObject[] = [
  {
    model: 'alias',
    stream: true,
    store: false,
    instructions: 'You write code.',
    include: ['reasoning.encrypted_content'],
    reasoning: { effort: 'medium', summary: 'auto' },
    prompt_cache_key: 'k',
    parallel_tool_calls: true,
    tool_choice: { type: 'function', name: 'read' },
    text: { format: { type: 'json_schema', name: 's', schema: { type: 'object' } }, verbosity: 'low' },
    tools: [
      { type: 'function', name: 'read', description: 'Read.', parameters: PARAMETERS, strict: false },
      {
        type: 'custom',
        name: 'patch',
        format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
      },
      {
        type: 'namespace',
        name: 'agents',
        description: 'More.',
        tools: [{ type: 'function', name: 'spawn', parameters: PARAMETERS }],
      },
    ],
    input: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'developer',
        content: [{ type: 'input_text', text: 'Be brief.' }],
      },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'x' },
          { type: 'input_image', image_url: IMAGE, detail: 'high' },
        ],
      },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'I look.' }],
        content: null,
        encrypted_content: 'foreign',
      },
      {
        type: 'message',
        id: 'msg_2',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'So.', annotations: [] }],
      },
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'read', arguments: '{"path": "a"}' },
      { type: 'function_call', call_id: 'c2', namespace: 'agents', name: 'spawn', arguments: '{}' },
      { type: 'custom_tool_call', call_id: 'c3', name: 'patch', input: '*** Begin' },
      { type: 'function_call_output', call_id: 'c1', output: 'one' },
      { type: 'function_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'two' }] },
      { type: 'custom_tool_call_output', call_id: 'c3', output: 'three' },
    ],
  },
  { model: 'alias', input: 'x', max_output_tokens: 5, temperature: 1, metadata: {}, truncation: 'disabled' },
];
