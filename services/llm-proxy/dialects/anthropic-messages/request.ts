// The anthropic-messages dialect: what a harness asks.
import { arrayOf, isObject, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import type { Asked } from '../dialect.ts';
import { type Allowed, Faults } from '../faults.ts';
import { readFields } from '../features.ts';
import { readConversation } from './conversation.ts';
import { RULES } from './rules.ts';
import { choiceFields, toolsOf } from './tools.ts';
import { messagesWriter } from './writer.ts';

/** Throws DIALECT_INVALID with every fault. */
export function readMessagesRequest(body: JsonObject, allowed?: Allowed): Asked {
  const faults = new Faults(allowed);
  const fields = readFields(body, RULES, faults);
  const conversation = readConversation(body, faults);
  const given = toolsOf(body['tools'], faults);
  const tools = conversation.tools.length === 0 ? given : [...given, ...conversation.tools];
  if (isObject(body['tool_choice'])) Object.assign(fields, choiceFields(body['tool_choice'], tools, faults));
  Object.assign(fields, mappedFields(body, faults), prefillFields(conversation.messages));
  faults.throwIfAny();
  const stops = arrayOf(body['stop_sequences']).map(String);
  const showsThinking = objectOf(body['thinking'])['display'] !== 'omitted';
  return {
    dialect: 'anthropic-messages',
    messages: conversation.messages,
    tools,
    fields,
    model: textOf(body['model']),
    stream: body['stream'] === true,
    n: 1,
    writer: (shown) => messagesWriter({ shown, stops, showsThinking }),
  };
}

/** Fields that the engine has under other names. */
function mappedFields(body: JsonObject, faults: Faults): JsonObject {
  const stops = arrayOf(body['stop_sequences']);
  return {
    ...(stops.length > 0 && { stop: [...stops] }),
    ...thinkingFields(objectOf(body['thinking']), faults),
    ...outputFields(body, faults),
  };
}

const THINKS: Readonly<Record<string, boolean>> = {
  enabled: true,
  adaptive: true,
  between_tools: true,
  disabled: false,
};

function thinkingFields({ type }: JsonObject, faults: Faults): JsonObject {
  if (type === undefined) return {};
  const known = typeof type === 'string' && Object.hasOwn(THINKS, type);
  faults.expect(known, 'thinking.type', `must be one of ${Object.keys(THINKS).join(', ')}`);
  return { chat_template_kwargs: { enable_thinking: THINKS[String(type)] ?? false } };
}

/**
 * The three that every engine takes of every model that takes any. vLLM and SGLang know finer words (0.32.0, 0.5.23), but it is the
 * model that counts: vLLM refuses them for gpt-oss, whose call would fail. Who speaks `openai-chat` says them itself.
 */
const EFFORTS: Readonly<Record<string, string>> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

function outputFields(body: JsonObject, faults: Faults): JsonObject {
  const { effort, format = body['output_format'] } = objectOf(body['output_config']);
  const fields: JsonObject = {};
  if (effort !== undefined && effort !== null) {
    const known = typeof effort === 'string' && Object.hasOwn(EFFORTS, effort);
    faults.expect(known, 'output_config.effort', `must be one of ${Object.keys(EFFORTS).join(', ')}`);
    fields['reasoning_effort'] = EFFORTS[String(effort)] ?? '';
  }
  if (format !== undefined && format !== null) {
    const { type, schema } = objectOf(format);
    const ok = type === 'json_schema' && isObject(schema);
    faults.expect(ok, 'output_config.format', 'must be of type json_schema, with a schema');
    fields['response_format'] = {
      type: 'json_schema',
      json_schema: { name: 'output', schema: schema ?? {}, strict: true },
    };
  }
  return fields;
}

/** A conversation that ends with the assistant's text asks for the rest of it. */
function prefillFields(messages: readonly JsonObject[]): JsonObject {
  const last = messages.at(-1);
  if (last?.['role'] !== 'assistant' || last['tool_calls'] !== undefined) return {};
  return { continue_final_message: true, add_generation_prompt: false };
}
