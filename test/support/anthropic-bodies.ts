// Real requests of the anthropic-messages dialect, as harnesses send them.
import { sealReasoning } from '../../services/llm-proxy/dialects/sealed-reasoning.ts';
import type { JsonObject } from '../../services/llm-proxy/domain/json.ts';
import { PIXEL } from './generated.ts';

const SCHEMA = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const MARK = { type: 'ephemeral' };
const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } };

/** As Claude Code sends it, with its tools that come later and its edits of the context. */
const LATE_TURN: JsonObject = {
  model: 'alias',
  stream: true,
  max_tokens: 32000,
  thinking: { type: 'adaptive', display: 'omitted' },
  output_config: { effort: 'high' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  metadata: { user_id: '{"device_id":"d","session_id":"s"}' },
  system: [
    { type: 'text', text: 'You are an agent.' },
    { type: 'text', text: 'Be brief.', cache_control: MARK },
  ],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: '<system-reminder>git status</system-reminder>' },
        { type: 'text', text: 'Look at both.', cache_control: MARK },
      ],
    },
    {
      role: 'system',
      content: [
        { type: 'text', text: '# Environment' },
        { type: 'tool_addition', tool: { type: 'tool_reference', name: 'Late' } },
        { type: 'tool_removal', tool: { type: 'tool_reference', name: 'Late' } },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '', signature: sealReasoning('first this') },
        { type: 'redacted_thinking', data: 'EpQBCkYIBxgC' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'c1', name: 'Read', input: { path: 'a' } },
        { type: 'tool_use', id: 'c2', name: 'Read', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'c1', content: 'one' },
        {
          type: 'tool_result',
          tool_use_id: 'c2',
          is_error: true,
          content: [{ type: 'text', text: 'two' }, IMAGE, { type: 'tool_reference', tool_name: 'Late' }],
        },
        { type: 'text', text: 'Go on.' },
      ],
    },
  ],
  tools: [
    { name: 'Read', description: 'Read.', input_schema: SCHEMA, cache_control: MARK },
    {
      type: 'custom',
      name: 'Late',
      input_schema: SCHEMA,
      input_examples: [{ path: 'a' }],
      defer_loading: true,
      strict: true,
      eager_input_streaming: true,
      allowed_callers: ['direct'],
    },
  ],
  tool_choice: { type: 'auto', disable_parallel_tool_use: true },
};

const PARTS: JsonObject = {
  model: 'alias',
  max_tokens: 10,
  temperature: 0.5,
  top_p: 0.9,
  top_k: 5,
  stop_sequences: ['END'],
  system: 'Be brief.',
  messages: [
    {
      role: 'user',
      content: [
        IMAGE,
        { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } },
        {
          type: 'document',
          title: 'T',
          source: { type: 'text', media_type: 'text/plain', data: 'body' },
          citations: { enabled: true },
        },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'x' }, IMAGE] } },
        { type: 'search_result', title: 'S', source: 'here', content: [{ type: 'text', text: 'found' }] },
      ],
    },
    { role: 'assistant', content: 'It is' },
  ],
  output_config: { format: { type: 'json_schema', schema: SCHEMA } },
};

export const MESSAGES_BODIES: readonly JsonObject[] = [
  LATE_TURN,
  PARTS,
  {
    model: 'alias',
    max_tokens: 10,
    messages: [{ role: 'user', content: 'hello' }],
    tools: [{ name: 'Read', input_schema: SCHEMA }],
    tool_choice: { type: 'tool', name: 'Read' },
    thinking: { type: 'disabled' },
    output_format: { type: 'json_schema', schema: SCHEMA },
    cache_control: MARK,
    service_tier: 'auto',
    speed: 'standard',
    inference_geo: 'eu',
    diagnostics: {},
    billing_policy: { type: 'billing_policy', bill_to: 'self' },
    fallbacks: 'default',
    fallback_credit_token: 'f',
  },
];
