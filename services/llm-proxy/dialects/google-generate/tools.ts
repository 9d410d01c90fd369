// The google-generate dialect: tool declarations and the choice among them.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { ReadOnce } from '../read-once.ts';
import { camelCased, nameOf } from './names.ts';
import { TOOL_RULES } from './rules.ts';
import { jsonSchemaOf } from './schema.ts';

const KNOWN = new ReadOnce<undefined, readonly JsonObject[]>();

export function toolsOf(tools: JsonValue | undefined, faults: Faults): readonly JsonObject[] {
  const read = () => ({ said: functionsOf(tools, faults), after: undefined });
  return KNOWN.read(tools ?? null, undefined, faults, read).said;
}

function functionsOf(tools: JsonValue | undefined, faults: Faults): JsonObject[] {
  return arrayOf(tools).flatMap((tool, i) => {
    const field = `tools[${i}]`;
    if (!faults.expect(isObject(tool), field, 'must be an object')) return [];
    const { functionDeclarations: declared = [], ...others } = camelCased(tool);
    for (const [name, value] of Object.entries(others)) {
      if (value !== null) faults.add(`${field}.${name}`, `${name} ${TOOL_RULES['any other member']?.how}`);
    }
    const inner = `${field}.functionDeclarations`;
    faults.expect(declared === null || Array.isArray(declared), inner, 'must be an array');
    return arrayOf(declared).map((one, k) => functionOf(camelCased(one), `${inner}[${k}]`, faults));
  });
}

function functionOf(declared: JsonObject, field: string, faults: Faults): JsonObject {
  const { name, description, parameters, parametersJsonSchema: schema } = declared;
  faults.expect(textOf(name) !== undefined, `${field}.name`, 'must be a string that is not empty');
  faults.check(description, `${field}.description`, {
    ok: (value) => typeof value === 'string',
    says: 'must be a string',
  });
  for (const [key, value] of Object.entries({ parameters, parametersJsonSchema: schema })) {
    faults.check(value, `${field}.${key}`, { ok: isObject, says: 'must be an object' });
  }
  const converted = isObject(parameters) ? jsonSchemaOf(parameters) : undefined;
  return {
    type: 'function',
    function: {
      name: name ?? '',
      ...(typeof description === 'string' && { description }),
      parameters: schema ?? converted ?? { type: 'object', properties: {} },
    },
  };
}

/** In the order of their numbers. */
const MODES: Readonly<Record<string, string>> = {
  MODE_UNSPECIFIED: 'auto',
  AUTO: 'auto',
  ANY: 'required',
  NONE: 'none',
  // That calls follow their schemas is up to the engine.
  VALIDATED: 'auto',
};

export interface Choice {
  /** Those that may be called. */
  readonly tools: readonly JsonObject[];
  readonly fields: JsonObject;
}

/** What `toolConfig` leaves of the tools, and the engine's field for the choice. */
export function choiceOf(
  config: JsonValue | undefined,
  tools: readonly JsonObject[],
  faults: Faults,
): Choice {
  if (!isObject(config)) return { tools, fields: {} };
  const field = 'toolConfig.functionCallingConfig';
  const { mode: given = 'AUTO', allowedFunctionNames } = camelCased(
    camelCased(config)['functionCallingConfig'],
  );
  const mode = nameOf(given, Object.keys(MODES));
  const known = typeof mode === 'string' && Object.hasOwn(MODES, mode);
  faults.expect(known, `${field}.mode`, `must be one of ${Object.keys(MODES).join(', ')}`);
  const allowed = new Set(arrayOf(allowedFunctionNames));
  const named = (tool: JsonObject): JsonValue => objectOf(tool['function'])['name'] ?? null;
  const declared = new Set(tools.map(named));
  faults.expect(
    allowed.isSubsetOf(declared),
    `${field}.allowedFunctionNames`,
    'must be names of declared functions',
  );
  const left = allowed.size === 0 ? tools : tools.filter((tool) => allowed.has(named(tool)));
  const choice = MODES[String(mode)] ?? 'auto';
  if (tools.length === 0) {
    faults.expect(choice !== 'required', `${field}.mode`, 'needs declared functions to choose from');
    return { tools, fields: {} };
  }
  // Of several that may be called the others are not shown: engines take one name or all.
  return { tools: choice === 'none' ? tools : left, fields: { tool_choice: choice } };
}
