// The openai-chat dialect: what a harness asks.
import { type FieldFault, PolarError } from '../../../common/errors.ts';
import { isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Asked } from '../dialect.ts';
import { chatWriter } from './reply.ts';

/** Replies that one call may ask for. */
const CHOICES_MAX = 128;

/** Throws DIALECT_INVALID with every fault. */
export function readChatRequest(body: JsonObject): Asked {
  const faults = faultsOf(body);
  if (faults.length > 0) throw invalid(faults);
  const wants = {
    logprobs: body['logprobs'] === true,
    usage: objectOf(body['stream_options'])['include_usage'] === true,
  };
  return {
    dialect: 'openai-chat',
    messages: body['messages'] as JsonObject[],
    tools: (body['tools'] ?? []) as JsonObject[],
    fields: fieldsOf(body),
    model: textOf(body['model']),
    stream: body['stream'] === true,
    n: typeof body['n'] === 'number' ? body['n'] : 1,
    writer: (shown) => chatWriter(wants, shown),
  };
}

export const invalid = (fields: readonly FieldFault[]): PolarError =>
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
  optional('n', isChoices, `must be a whole number from 1 to ${CHOICES_MAX}`);
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

const isChoices = (value: JsonValue): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= CHOICES_MAX;

/** Fields that would change what an engine takes for the prompt or what it returns beside the reply. */
const ENGINE_ONLY = /^(return_|input_ids$|input_embeds$|prompt_logprobs$|logprob_start_len$|echo$|rid$)/;
/** What has a place of its own in a request, or is the proxy's to say. */
const OWN = new Set(['messages', 'tools', 'model', 'stream', 'stream_options', 'n', 'logprobs']);

function fieldsOf(body: JsonObject): JsonObject {
  const fields: JsonObject = {};
  for (const [key, value] of Object.entries(body)) {
    if (!OWN.has(key) && !ENGINE_ONLY.test(key)) fields[key] = value;
  }
  if (body['logprobs'] !== true) delete fields['top_logprobs'];
  return fields;
}
