// The openai-chat dialect: the members of a request and what becomes of each. What has no rule is ignored, as engines have
// members that change what is sampled, or run code, which nobody here knows.
import { isObject } from '../../domain/json.ts';
import { CHOICES_MAX } from '../../domain/tokens.ts';
import {
  array,
  flag,
  numberFrom,
  numbers,
  numbersByName,
  object,
  oneOf,
  templateSettings,
  text,
  textOrTexts,
  wholeFrom,
} from '../checks.ts';
import type { Check } from '../faults.ts';
import type { Rule, Rules } from '../features.ts';

/** What `tool_choice` may be, in both of OpenAI's dialects. */
export const CHOICE =
  '`none`, `auto`, `required`, a function or a custom tool by name; of `allowed_tools` the others are not shown';

export const FIELDS: Rules = {
  messages: { support: 'mapped', how: 'see messages and content below' },
  tools: { support: 'mapped', how: 'see tools below', check: array },
  functions: { support: 'mapped', how: 'to tools; calls are answered as `function_call`', check: array },
  function_call: { support: 'mapped', how: 'to tool_choice' },
  tool_choice: { support: 'mapped', how: CHOICE },
  model: { support: 'mapped', how: "the engine's own name is sent, the asked one is shown", check: text },
  stream: { support: 'mapped', how: 'true: events as the tokens come', check: flag },
  stream_options: { support: 'mapped', how: '`include_usage`: a last chunk with usage', check: object },
  n: { support: 'mapped', how: 'one record a reply', check: wholeFrom(1, CHOICES_MAX) },
  logprobs: {
    support: 'mapped',
    how: 'asked of each engine that tells ids, of others where asked for; shown only then',
    check: flag,
  },
  top_logprobs: { support: 'mapped', how: 'carried with `logprobs: true`', check: wholeFrom(0, 20) },
  temperature: { support: 'carried', how: '', check: numberFrom(0, 100) },
  top_p: { support: 'carried', how: '', check: numberFrom(0, 1) },
  top_k: { support: 'carried', how: '', check: wholeFrom(-1) },
  min_p: { support: 'carried', how: '', check: numberFrom(0, 1) },
  max_tokens: { support: 'carried', how: '', check: wholeFrom(1) },
  max_completion_tokens: { support: 'carried', how: 'wins over max_tokens', check: wholeFrom(1) },
  stop: { support: 'carried', how: '', check: textOrTexts },
  seed: { support: 'carried', how: '', check: wholeFrom(Number.MIN_SAFE_INTEGER) },
  presence_penalty: { support: 'carried', how: '', check: numberFrom(-2, 2) },
  frequency_penalty: { support: 'carried', how: '', check: numberFrom(-2, 2) },
  repetition_penalty: { support: 'carried', how: '', check: numberFrom(0, 100) },
  logit_bias: { support: 'carried', how: 'by token id', check: numbersByName },
  parallel_tool_calls: { support: 'carried', how: '', check: flag },
  reasoning_effort: { support: 'carried', how: '', check: text },
  response_format: {
    support: 'carried',
    how: '`text`, `json_object`, `json_schema`',
    check: {
      ok: (value) => isObject(value) && isFormat(value['type'], value['json_schema']),
      says: 'must be {type: text}, {type: json_object} or {type: json_schema, json_schema: {schema}}',
    },
  },
  chat_template_kwargs: { support: 'carried', how: 'but for a chat_template', check: templateSettings },
  ...ofEngines({
    min_tokens: wholeFrom(0),
    stop_token_ids: numbers,
    ignore_eos: flag,
    bad_words: textOrTexts,
    include_stop_str_in_output: flag,
    skip_special_tokens: flag,
    add_generation_prompt: flag,
    continue_final_message: flag,
    structured_outputs: object,
    guided_json: undefined,
    guided_regex: text,
    guided_choice: array,
    guided_grammar: text,
    regex: text,
    ebnf: text,
    json_schema: undefined,
    grammar: text,
  }),
  user: { support: 'ignored', how: '', check: text },
  store: { support: 'ignored', how: 'nothing is stored for the harness', check: flag },
  metadata: { support: 'ignored', how: '' },
  service_tier: { support: 'ignored', how: '' },
  prediction: { support: 'ignored', how: '' },
  verbosity: { support: 'ignored', how: '' },
  prompt_cache_key: { support: 'ignored', how: 'engines find shared beginnings themselves' },
  prompt_cache_retention: { support: 'ignored', how: '' },
  prompt_cache_options: { support: 'ignored', how: '' },
  moderation: { support: 'ignored', how: 'nothing is moderated' },
  safety_identifier: { support: 'ignored', how: '' },
  modalities: {
    support: 'refused',
    how: 'other than text is not offered',
    check: { ok: (value) => Array.isArray(value) && value.every((one) => one === 'text'), says: '' },
  },
  audio: { support: 'refused', how: 'replies in audio are not offered' },
  web_search_options: { support: 'refused', how: 'web search runs at the provider and is not offered' },
  ...engineOnly(
    'input_ids',
    'input_embeds',
    'prompt_logprobs',
    'logprob_start_len',
    'routed_experts_start_len',
    'echo',
    'rid',
  ),
};

/** Members of vLLM, SGLang or llama-server that say how to sample or to make the prompt; on the record, as all of such. */
function ofEngines(checks: Readonly<Record<string, Check | undefined>>): Rules {
  const rules = Object.entries(checks).map(([name, check]): [string, Rule] => {
    return [name, { support: 'carried', how: 'by engines that know it', ...(check && { check }) }];
  });
  return Object.fromEntries(rules);
}

/** Fields that would change what an engine takes for the prompt or what it returns beside the reply. */
function engineOnly(...names: readonly string[]): Rules {
  const how = 'the proxy alone says what an engine takes for the prompt and returns';
  return Object.fromEntries(names.map((name) => [name, { support: 'ignored', how }]));
}

const isFormat = (type: unknown, schema: unknown): boolean =>
  oneOf('text', 'json_object').ok(type as string) ||
  (type === 'json_schema' && isObject(schema) && isObject(schema['schema']));
