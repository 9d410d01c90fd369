// The openai-chat dialect: what a harness asks, and what the engine is asked for it.
import type { Sampling } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type FieldFault, PolarError } from '../../common/errors.ts';
import { isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../domain/json.ts';
import { overrideSampling } from '../domain/sampling.ts';

/** A checked request. */
export interface ChatRequest {
  readonly body: JsonObject;
  readonly messages: readonly JsonValue[];
  readonly tools: readonly JsonValue[];
  /** Unset: the harness named none. */
  readonly model: string | undefined;
  readonly stream: boolean;
  /** Whether the harness wants to see logprobs. */
  readonly logprobs: boolean;
  /** Whether the harness wants a usage chunk in a stream. */
  readonly usage: boolean;
}

/** Throws DIALECT_INVALID with every fault. */
export function checkChatRequest(body: unknown): ChatRequest {
  if (!isObject(body)) throw invalid([{ field: '(body)', description: 'must be a JSON object' }]);
  const faults = faultsOf(body);
  if (faults.length > 0) throw invalid(faults);
  return {
    body,
    messages: body['messages'] as JsonValue[],
    tools: (body['tools'] ?? []) as JsonValue[],
    model: textOf(body['model']),
    stream: body['stream'] === true,
    logprobs: body['logprobs'] === true,
    usage: objectOf(body['stream_options'])['include_usage'] === true,
  };
}

const invalid = (fields: readonly FieldFault[]): PolarError =>
  new PolarError(
    'DIALECT_INVALID',
    fields.map(({ field, description }) => `${field}: ${description}`).join('; '),
    { fields },
  );

function faultsOf(body: JsonObject): FieldFault[] {
  const faults: FieldFault[] = [];
  const expect = (ok: boolean, field: string, description: string): void => {
    if (!ok) faults.push({ field, description });
  };
  const optional = (field: string, ok: (value: JsonValue) => boolean, description: string): void => {
    const value = body[field];
    expect(value === undefined || value === null || ok(value), field, description);
  };
  optional('model', (value) => typeof value === 'string', 'must be a string');
  optional('stream', (value) => typeof value === 'boolean', 'must be a boolean');
  optional('stream_options', isObject, 'must be an object');
  optional('logprobs', (value) => typeof value === 'boolean', 'must be a boolean');
  optional('tools', Array.isArray, 'must be an array');
  optional('n', (value) => value === 1, 'must be 1: each call is one node of the token tree');
  const messages = body['messages'];
  if (!Array.isArray(messages) || messages.length === 0) {
    expect(false, 'messages', 'must be an array with at least one message');
    return faults;
  }
  for (const [i, message] of messages.entries()) {
    expect(isObject(message), `messages[${i}]`, 'must be an object');
    if (!isObject(message)) continue;
    expect(textOf(message['role']) !== undefined, `messages[${i}].role`, 'must be a string');
  }
  return faults;
}

/** Fields that would change what an engine takes for the prompt or what it returns beside the reply. */
const ENGINE_ONLY = /^(return_|input_ids$|input_embeds$|prompt_logprobs$|logprob_start_len$|echo$|rid$|n$)/;

/** The body for the engine: served model, the task's sampling, the fields that bring the ids. */
export function engineBody(
  request: ChatRequest,
  model: string,
  fields: JsonObject,
  sampling: Sampling | undefined,
): JsonObject {
  const body: JsonObject = {};
  for (const [key, value] of Object.entries(request.body)) if (!ENGINE_ONLY.test(key)) body[key] = value;
  overrideSampling(body, sampling);
  const topLogprobs = request.logprobs ? request.body['top_logprobs'] : undefined;
  Object.assign(body, fields, topLogprobs === undefined ? {} : { top_logprobs: topLogprobs });
  body['model'] = model;
  body['messages'] = request.messages.map(forTemplate);
  body['stream'] = request.stream;
  delete body['stream_options'];
  if (request.stream) {
    body['stream_options'] = { ...objectOf(request.body['stream_options']), include_usage: true };
  }
  return body;
}

/** Chat templates know no developer. */
function forTemplate(message: JsonValue): JsonValue {
  if (!isObject(message) || message['role'] !== 'developer') return message;
  return { ...message, role: 'system' };
}
