// The google-generate dialect: its schemas, a subset of OpenAPI's, as JSON Schema.
import { isObject, type JsonObject, type JsonValue } from '../../domain/json.ts';

/** Counts, which the API takes as strings too. */
const COUNTS = /^(min|max)(Items|Length|Properties)$/;

export function jsonSchemaOf(schema: JsonObject): JsonObject {
  const said: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key !== 'nullable' && key !== 'propertyOrdering') said[key] = memberOf(key, value);
  }
  const { type } = said;
  if (schema['nullable'] === true && typeof type === 'string') said['type'] = [type, 'null'];
  return said;
}

const within = (value: JsonValue): JsonValue => (isObject(value) ? jsonSchemaOf(value) : value);

function memberOf(key: string, value: JsonValue): JsonValue {
  switch (key) {
    case 'type':
      return typeof value === 'string' ? value.toLowerCase() : value;
    case 'items':
    case 'additionalProperties':
      return within(value);
    case 'anyOf':
    case 'prefixItems':
      return Array.isArray(value) ? value.map(within) : value;
    case 'properties':
      return isObject(value)
        ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, within(one)]))
        : value;
    default:
      return COUNTS.test(key) && typeof value === 'string' ? Number(value) : value;
  }
}
