// The openai-responses dialect: the members of a request and what becomes of each. What has no rule is ignored.
import { isObject } from '../../domain/json.ts';
import {
  array,
  flag,
  numberFrom,
  object,
  oneOf,
  templateSettings,
  text,
  textOrTexts,
  wholeFrom,
} from '../checks.ts';
import type { Rules } from '../features.ts';
import { CHOICE } from '../openai-chat/fields.ts';

const isFalse = { ok: (value: unknown) => value === false, says: '' };

export const FIELDS: Rules = {
  instructions: { support: 'mapped', how: 'to a first message of role system', check: text },
  input: { support: 'mapped', how: 'see items and content below' },
  tools: { support: 'mapped', how: 'see tools below', check: array },
  tool_choice: { support: 'mapped', how: CHOICE },
  model: { support: 'mapped', how: "the engine's own name is sent, the asked one is shown", check: text },
  stream: { support: 'mapped', how: 'true: events as the tokens come', check: flag },
  max_output_tokens: { support: 'mapped', how: 'to max_tokens', check: wholeFrom(1) },
  text: { support: 'mapped', how: '`format` to response_format; `verbosity` is ignored', check: object },
  reasoning: {
    support: 'mapped',
    how: '`effort` to reasoning_effort; with `summary`, the reasoning is told as its summary',
    check: {
      ok: (value) => isObject(value) && typeof (value['effort'] ?? '') === 'string',
      says: 'must be an object with an effort that is a string',
    },
  },
  include: {
    support: 'mapped',
    how: '`reasoning.encrypted_content`; others are ignored',
    check: textOrTexts,
  },
  temperature: { support: 'carried', how: '', check: numberFrom(0, 100) },
  top_p: { support: 'carried', how: '', check: numberFrom(0, 1) },
  top_k: { support: 'carried', how: 'not of the dialect; engines take it', check: wholeFrom(-1) },
  min_p: { support: 'carried', how: 'not of the dialect; engines take it', check: numberFrom(0, 1) },
  seed: {
    support: 'carried',
    how: 'not of the dialect; engines take it',
    check: wholeFrom(Number.MIN_SAFE_INTEGER),
  },
  stop: { support: 'carried', how: 'not of the dialect; engines take it', check: textOrTexts },
  chat_template_kwargs: {
    support: 'carried',
    how: 'not of the dialect; engines take it, but for a chat_template',
    check: templateSettings,
  },
  parallel_tool_calls: { support: 'carried', how: '', check: flag },
  store: {
    support: 'mapped',
    how: 'unless false, later calls of the attempt may name the response and its items, and reasoning comes with its `encrypted_content`',
    check: flag,
  },
  metadata: { support: 'ignored', how: 'shown in the reply', check: object },
  truncation: {
    support: 'ignored',
    how: 'nothing is ever left out: too long a prompt is an error',
    check: oneOf('auto', 'disabled'),
  },
  top_logprobs: { support: 'ignored', how: 'logprobs are recorded, not shown', check: wholeFrom(0, 20) },
  max_tool_calls: { support: 'ignored', how: 'counts tools that run at the provider', check: wholeFrom(0) },
  stream_options: { support: 'ignored', how: '', check: object },
  prompt_cache_key: { support: 'ignored', how: 'engines find shared beginnings themselves' },
  prompt_cache_retention: { support: 'ignored', how: '' },
  prompt_cache_options: { support: 'ignored', how: '' },
  client_metadata: { support: 'ignored', how: '' },
  service_tier: { support: 'ignored', how: '' },
  safety_identifier: { support: 'ignored', how: '' },
  user: { support: 'ignored', how: '' },
  moderation: { support: 'ignored', how: 'nothing is moderated' },
  image: { support: 'ignored', how: 'images go to the engine as they are' },
  access_programs: { support: 'ignored', how: '' },
  previous_response_id: {
    support: 'mapped',
    how: 'the conversation of that response of this attempt goes before `input`, without its instructions',
    check: text,
  },
  conversation: {
    support: 'refused',
    how: 'conversations are not stored: go on by previous_response_id, or send the whole conversation as input',
  },
  prompt: { support: 'refused', how: 'stored prompts are not offered: send instructions and input' },
  background: { support: 'refused', how: 'no call goes on without its connection', check: isFalse },
  multi_agent: { support: 'refused', how: 'agents that run at the provider are not offered' },
  context_management: { support: 'refused', how: 'compaction is the harness’s own' },
};
