// The google-generate dialect: what a harness asks.
import { withNumbers } from '../../domain/exact-numbers.ts';
import { isObject, type JsonObject, type JsonValue, textOf } from '../../domain/json.ts';
import type { GenerateTarget } from '../../domain/paths.ts';
import type { Asked } from '../dialect.ts';
import { type Allowed, Faults } from '../faults.ts';
import { readFields } from '../features.ts';
import { readConversation } from './conversation.ts';
import { camelCased } from './names.ts';
import { ENGINE_NAMES, GENERATION_RULES, RULES } from './rules.ts';
import { jsonSchemaOf } from './schema.ts';
import { choiceOf, toolsOf } from './tools.ts';
import { contentWriter } from './writer.ts';

/** Throws DIALECT_INVALID with every fault. */
export function readGenerateRequest(given: JsonObject, target: GenerateTarget, allowed?: Allowed): Asked {
  const faults = new Faults(allowed);
  const body = bodyOf(given);
  readFields(body, RULES, faults);
  const messages = readConversation(body, faults);
  const generation = withNumbers(camelCased(body['generationConfig']));
  const fields = generationFields(generation, faults);
  const tools = toolsOf(body['tools'], faults);
  const choice = choiceOf(body['toolConfig'], tools, faults);
  faults.throwIfAny();
  const showsThoughts = camelCased(generation['thinkingConfig'])['includeThoughts'] === true;
  const events = target.events !== false;
  return {
    dialect: 'google-generate',
    messages,
    tools: choice.tools,
    fields: { ...fields, ...choice.fields },
    model: target.model ?? textOf(body['model']),
    stream: target.stream === true,
    n: typeof generation['candidateCount'] === 'number' ? generation['candidateCount'] : 1,
    writer: (shown) => contentWriter({ shown, showsThoughts, events }),
  };
}

/** A question for the length of a prompt may hold the whole request as one member. */
function bodyOf(given: JsonObject): JsonObject {
  const body = camelCased(given);
  return isObject(body['generateContentRequest']) ? camelCased(body['generateContentRequest']) : body;
}

function generationFields(config: JsonObject, faults: Faults): JsonObject {
  const checked = new PrefixedFaults(faults);
  readFields(config, GENERATION_RULES, checked);
  const fields: JsonObject = {};
  for (const [name, engineName] of Object.entries(ENGINE_NAMES)) {
    const value = config[name];
    if (value !== undefined && value !== null) fields[engineName] = value;
  }
  Object.assign(fields, thinkingFields(withNumbers(camelCased(config['thinkingConfig'])), faults));
  Object.assign(fields, formatFields(config, faults));
  return fields;
}

/** Faults of a member are named by its path. */
class PrefixedFaults extends Faults {
  readonly #faults: Faults;

  constructor(faults: Faults) {
    super();
    this.#faults = faults;
  }

  override add(field: string, description: string): void {
    this.#faults.add(`generationConfig.${field}`, description);
  }
}

/** `MINIMAL`, too, in a word that every engine takes: vLLM refuses `minimal` for gpt-oss. */
const EFFORTS: Readonly<Record<string, string>> = {
  MINIMAL: 'low',
  LOW: 'low',
  MEDIUM: 'medium',
  HIGH: 'high',
};

/** A budget of 0 turns thinking off; any other wish for thoughts turns it on. */
function thinkingFields(config: JsonObject, faults: Faults): JsonObject {
  const { thinkingBudget: budget, thinkingLevel: level, includeThoughts: shown } = config;
  const fields: JsonObject = {};
  const at = 'generationConfig.thinkingConfig';
  faults.check(budget, `${at}.thinkingBudget`, { ok: Number.isInteger, says: 'must be a whole number' });
  if (typeof budget === 'number' || shown === true)
    fields['chat_template_kwargs'] = { enable_thinking: budget !== 0 };
  if (typeof level === 'string' && level !== 'THINKING_LEVEL_UNSPECIFIED') {
    const effort = EFFORTS[level.toUpperCase()];
    faults.expect(
      effort !== undefined,
      `${at}.thinkingLevel`,
      `must be one of ${Object.keys(EFFORTS).join(', ')}`,
    );
    fields['reasoning_effort'] = effort ?? '';
  }
  return fields;
}

function formatFields(config: JsonObject, faults: Faults): JsonObject {
  const { type, schema } = formatOf(config, faults);
  if (type === 'text/plain') return {};
  if (!isObject(schema)) return { response_format: { type: 'json_object' } };
  return { response_format: { type: 'json_schema', json_schema: { name: 'output', schema, strict: true } } };
}

interface Format {
  readonly type: 'text/plain' | 'application/json';
  readonly schema: JsonValue | undefined;
}

/** The newer of the API's forms for it is read first. */
function formatOf(config: JsonObject, faults: Faults): Format {
  const { responseFormat, responseMimeType, responseSchema, responseJsonSchema } = config;
  if (Array.isArray(responseFormat)) return textFormat(responseFormat, faults);
  const converted = isObject(responseSchema) ? jsonSchemaOf(responseSchema) : undefined;
  const schema = responseJsonSchema ?? converted;
  const type = typeOf(responseMimeType, schema, 'generationConfig.responseMimeType', faults);
  return { type, schema };
}

function textFormat(formats: readonly JsonValue[], faults: Faults): Format {
  const at = 'generationConfig.responseFormat';
  const [format, ...others] = formats.map(camelCased);
  const { text, ...rest } = format ?? {};
  const alone = others.length === 0 && isObject(text) && Object.keys(rest).length === 0;
  faults.expect(alone, at, 'must be one format, of text');
  const { mimeType, schema } = camelCased(text);
  return { type: typeOf(mimeType, schema, `${at}[0].text.mimeType`, faults), schema };
}

/** A schema says by itself that it is JSON. */
function typeOf(
  mimeType: JsonValue | undefined,
  schema: JsonValue | undefined,
  at: string,
  faults: Faults,
): Format['type'] {
  const hasSchema = isObject(schema);
  const type = mimeType ?? (hasSchema ? 'application/json' : 'text/plain');
  const ok = type === 'application/json' || (type === 'text/plain' && !hasSchema);
  const allowed = hasSchema ? 'application/json' : 'text/plain or application/json';
  faults.expect(ok, at, `must be ${allowed}`);
  return type === 'application/json' ? type : 'text/plain';
}
