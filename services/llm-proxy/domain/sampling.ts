// Sampling parameters: what the task sets wins over what the harness asks for.
import type { Sampling } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { isWithin } from '../../common/json-values.ts';
import { rounded } from './exact-numbers.ts';
import type { JsonObject } from './json.ts';

/** Request fields that decide what is sampled from a given prompt; they go on the record. */
const RECORDED = [
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'max_tokens',
  'max_completion_tokens',
  'min_tokens',
  'seed',
  'stop',
  'stop_token_ids',
  'ignore_eos',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'logit_bias',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
  'reasoning_effort',
  'chat_template_kwargs',
  'bad_words',
  'include_stop_str_in_output',
  'skip_special_tokens',
  'add_generation_prompt',
  'continue_final_message',
  'structured_outputs',
  'guided_json',
  'guided_regex',
  'guided_choice',
  'guided_grammar',
  'regex',
  'ebnf',
  'json_schema',
  'grammar',
] as const;

/** Readers of protobuf stop at 100 messages in each other, and a level of JSON is two: what is deeper is recorded as text. */
const RECORDED_NESTING_MAX = 40;

/** Put the task's parameters in place of the harness's. */
export function overrideSampling(body: JsonObject, set: Sampling | undefined): void {
  if (set === undefined) return;
  if (set.temperature !== undefined) body['temperature'] = set.temperature;
  if (set.topP !== undefined) body['top_p'] = set.topP;
  if (set.topK !== undefined) body['top_k'] = set.topK;
  if (set.seedBase !== undefined) body['seed'] = set.seedBase;
  if (set.maxTokens === undefined) return;
  delete body['max_completion_tokens'];
  body['max_tokens'] = set.maxTokens;
}

/** The parameters of a request as sent to the engine. */
export function samplingOf(body: JsonObject): JsonObject {
  const recorded: JsonObject = {};
  for (const key of RECORDED) {
    const value = body[key];
    if (value === undefined) continue;
    recorded[key] = isWithin(value, RECORDED_NESTING_MAX) ? rounded(value) : JSON.stringify(value);
  }
  return recorded;
}
