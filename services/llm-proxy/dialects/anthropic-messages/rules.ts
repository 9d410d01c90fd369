// The anthropic-messages dialect: what becomes of each field of a request.
import { arrayOf, isObject, textOf } from '../../domain/json.ts';
import { array, flag, numberFrom, object, text, wholeFrom } from '../checks.ts';
import type { Check } from '../faults.ts';
import { type Feature, featuresOf, type Rule, type Rules } from '../features.ts';
import { pathFeatures } from '../not-offered.ts';

const empty: Check = { ok: (value) => Array.isArray(value) && value.length === 0, says: 'must be empty' };
const texts: Check = {
  ok: (value) => Array.isArray(value) && value.every(text.ok),
  says: 'must be an array of strings',
};
const never: Check = { ok: () => false, says: '' };

/** Edits that only shorten the history; the prompt is then longer than the harness expects, and no less. */
const clearing: Check = {
  ok: (value) =>
    isObject(value) &&
    arrayOf(value['edits']).every((edit) => isObject(edit) && textOf(edit['type'])?.startsWith('clear_')),
  says: 'holds an edit that is not offered: only those that clear are taken, and they leave the history as it is',
};

const ignored = (how: string): Rule => ({ support: 'ignored', how });
const refused = (how: string, check: Check = never): Rule => ({ support: 'refused', how, check });

/** Fields of the body. What has no rule is ignored. */
export const RULES: Rules = {
  model: {
    support: 'mapped',
    how: 'the engine’s own name is sent, the asked one is shown',
    check: text,
  },
  messages: { support: 'mapped', how: 'each in its place, those of role system too', check: array },
  system: { support: 'mapped', how: 'to a first message of role system' },
  max_tokens: { support: 'carried', how: 'may be absent', check: wholeFrom(1) },
  temperature: { support: 'carried', how: '', check: numberFrom(0, 2) },
  top_p: { support: 'carried', how: '', check: numberFrom(0, 1) },
  top_k: { support: 'carried', how: '', check: wholeFrom(-1) },
  stop_sequences: { support: 'mapped', how: 'to stop; the one that was met is told', check: texts },
  stream: { support: 'mapped', how: 'true: events as the tokens come', check: flag },
  tools: { support: 'mapped', how: 'see tools below', check: array },
  tool_choice: { support: 'mapped', how: 'to tool_choice and parallel_tool_calls', check: object },
  thinking: {
    support: 'mapped',
    how: 'to chat_template_kwargs.enable_thinking; `display: omitted` is kept, budgets and `block_binding` are ignored',
    check: object,
  },
  output_config: {
    support: 'mapped',
    how: '`effort` to reasoning_effort (`xhigh`, `max` to `high`), `format` to response_format; `task_budget` is ignored',
    check: object,
  },
  output_format: { support: 'mapped', how: 'to response_format', check: object },
  context_management: { ...ignored('edits that clear change nothing; others are refused'), check: clearing },
  metadata: ignored('not recorded'),
  cache_control: ignored('wherever it stands: engines cache prefixes unasked'),
  service_tier: ignored(''),
  speed: ignored(''),
  inference_geo: ignored(''),
  diagnostics: ignored(''),
  billing_policy: ignored(''),
  fallbacks: ignored('the session decides which model answers'),
  fallback_credit_token: ignored(''),
  container: refused('containers are not offered'),
  mcp_servers: refused('tools that run at the provider are not offered', empty),
  compaction: refused('compaction by the provider is not offered'),
  thread: refused('threads kept by the provider are not offered'),
};

/** Tool definitions by their `type`. */
export const TOOL_RULES: Rules = {
  'custom, or no type': { support: 'mapped', how: 'to a function with `input_schema` as its parameters' },
  'any other type': refused('defined by the provider and not offered; give a tool with an input_schema'),
  strict: { support: 'mapped', how: 'to the function’s' },
  input_examples: { support: 'mapped', how: 'to `examples` of the parameters' },
  allowed_callers: ignored('no program at the provider calls tools'),
  eager_input_streaming: ignored('arguments always stream as they are sampled'),
  defer_loading: ignored('the tool is shown from the start, so that the prompt keeps its head'),
};

/** Blocks of messages by their `type`. */
export const BLOCK_RULES: Rules = {
  text: { support: 'mapped', how: 'to text; one alone is the same as a string' },
  image: {
    support: 'mapped',
    how: 'to image_url, in tool results too; from `base64`, or `url` where the node has `image_urls`',
  },
  document: { support: 'mapped', how: 'to text, from `text` or `content`; PDF and files are refused' },
  search_result: { support: 'mapped', how: 'to text: title, source and what was found' },
  thinking: {
    support: 'mapped',
    how: 'to reasoning_content; where only the signature is left, what it holds',
  },
  redacted_thinking: {
    support: 'mapped',
    how: 'to reasoning_content where the proxy has sealed it; of others nothing can be read',
  },
  tool_use: { support: 'mapped', how: 'to a tool call of the assistant message' },
  tool_result: {
    support: 'mapped',
    how: 'to a tool message; with `is_error`, `[Tool Error]` in front of its text',
  },
  tool_reference: { support: 'mapped', how: 'to text that names the tool' },
  tool_addition: {
    support: 'mapped',
    how: 'of system messages, to text that names the tool; a definition joins the tools',
  },
  tool_removal: { support: 'mapped', how: 'of system messages, to text that names the tool' },
  citations: ignored('replies tell none'),
  'any other type': refused('blocks of this type are not offered'),
};

export const features: readonly Feature[] = [
  ...pathFeatures('anthropic-messages'),
  ...featuresOf('fields', RULES),
  ...featuresOf('tools', TOOL_RULES),
  ...featuresOf('content', BLOCK_RULES),
];
