// The openai-chat dialect: what a harness asks.
import { countOf, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import { Notes } from '../../domain/notes.ts';
import type { Asked } from '../dialect.ts';
import { type Allowed, Faults } from '../faults.ts';
import { readFields } from '../features.ts';
import { FIELDS } from './fields.ts';
import { readMessages } from './messages.ts';
import { chatWriter } from './reply.ts';
import type { Declared } from './tool-calls.ts';
import { readToolChoice, readTools } from './tools.ts';

/** Throws DIALECT_INVALID with every fault. */
export function readChatRequest(body: JsonObject, allowed?: Allowed, notes = new Notes()): Asked {
  const faults = new Faults(allowed);
  const fields = readFields(body, FIELDS, faults);
  const tools = readTools(body, faults);
  const { list, choice } = readToolChoice(body, tools, faults);
  const messages = readMessages(body['messages'], faults, notes);
  faults.throwIfAny();
  if (choice !== undefined) fields['tool_choice'] = choice;
  const { n, logprobs, top_logprobs: top } = body;
  if (logprobs === true && typeof top === 'number') fields['top_logprobs'] = top;
  const wants = {
    logprobs: logprobs === true,
    topLogprobs: countOf(top),
    usage: objectOf(body['stream_options'])['include_usage'] === true,
    declared: asFunctions(tools.declared) ? undefined : tools.declared,
  };
  return {
    dialect: 'openai-chat',
    messages,
    tools: list,
    fields,
    model: textOf(body['model']),
    stream: body['stream'] === true,
    n: typeof n === 'number' ? n : 1,
    showsLogprobs: wants.logprobs,
    writer: (shown) => chatWriter(wants, shown),
  };
}

const asFunctions = ({ custom, legacy }: Declared): boolean => custom.size === 0 && !legacy;
