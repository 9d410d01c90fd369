// The openai-responses dialect: what a harness asks.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Found } from '../../domain/stored-replies.ts';
import type { Asked } from '../dialect.ts';
import { type Allowed, Faults } from '../faults.ts';
import { readFields } from '../features.ts';
import { readInput } from './conversation.ts';
import { FIELDS } from './fields.ts';
import { responsesWriter } from './reply.ts';
import { NamedItems, readPrevious, replyIdOf } from './stored.ts';
import { readToolChoice, readTools } from './tools.ts';

/** Throws DIALECT_INVALID with every fault. */
export function readResponsesRequest(body: JsonObject, allowed?: Allowed, found?: Found<JsonObject>): Asked {
  const faults = new Faults(allowed);
  const fields = readFields(body, FIELDS, faults);
  const tools = readTools(body['tools'], faults);
  const { list, choice } = readToolChoice(body['tool_choice'], tools, faults);
  const format = readFormat(objectOf(body['text'])['format'], faults);
  const previous = readPrevious(body, found);
  const spoken = readInput(body['input'], { previous, named: new NamedItems(found) }, faults);
  faults.throwIfAny();
  const { instructions, max_output_tokens: most, reasoning } = body;
  const instructed = textOf(instructions) === undefined ? [] : [systemOf(instructions as string)];
  const effort = objectOf(reasoning)['effort'];
  const mapped = { tool_choice: choice, response_format: format, max_tokens: most, reasoning_effort: effort };
  for (const [key, value] of Object.entries(mapped)) {
    if (value !== undefined && value !== null) fields[key] = value;
  }
  // Here it may be said without tools, in the engines' dialect it may not.
  if (list.length === 0) delete fields['parallel_tool_calls'];
  const wants = {
    echo: echoOf(body),
    declared: tools.declared,
    summary: textOf(objectOf(reasoning)['summary']) !== undefined,
    // Who counts on its being stored may keep the item without its text.
    sealed: body['store'] !== false || arrayOf(body['include']).includes('reasoning.encrypted_content'),
  };
  return {
    dialect: 'openai-responses',
    messages: [...instructed, ...previous, ...spoken],
    tools: list,
    fields,
    model: textOf(body['model']),
    stream: body['stream'] === true,
    n: 1,
    ...(body['store'] !== false && { storedFrom: instructed.length }),
    writer: (shown, callId) => responsesWriter(wants, shown, callId && replyIdOf(callId)),
  };
}

const systemOf = (content: string): JsonObject => ({ role: 'system', content });

/** `text.format` as `response_format`; undefined: plain text. */
function readFormat(format: JsonValue | undefined, faults: Faults): JsonObject | undefined {
  if (format === undefined || format === null) return undefined;
  const { type, ...rest } = objectOf(format);
  if (type === 'text') return undefined;
  if (type === 'json_object') return { type };
  const whole = type === 'json_schema' && isObject(rest['schema']) && textOf(rest['name']) !== undefined;
  faults.expect(whole, 'text.format', 'must be text, json_object, or json_schema with name and schema');
  return { type: 'json_schema', json_schema: rest };
}

/** What a reply repeats of its request. */
function echoOf(body: JsonObject): JsonObject {
  return {
    instructions: body['instructions'] ?? null,
    max_output_tokens: body['max_output_tokens'] ?? null,
    metadata: body['metadata'] ?? {},
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    previous_response_id: body['previous_response_id'] ?? null,
    reasoning: body['reasoning'] ?? null,
    store: body['store'] !== false,
    temperature: body['temperature'] ?? null,
    text: body['text'] ?? { format: { type: 'text' } },
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: body['tools'] ?? [],
    top_p: body['top_p'] ?? null,
    truncation: 'disabled',
  };
}
