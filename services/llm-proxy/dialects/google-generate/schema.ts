// The google-generate dialect: its schemas, a subset of OpenAPI's, as JSON Schema.
import { isObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';

/** Schemas within schemas. */
const DEPTH_MAX = 64;

/** Counts, which the API takes as strings too. */
const COUNTS = /^(min|max)(Items|Length|Properties)$/;

export function jsonSchemaOf(schema: JsonObject, field: string, faults: Faults): JsonObject {
  let tooDeep = false;
  const converted = (value: JsonValue, depth: number): JsonValue => {
    if (!isObject(value)) return value;
    if (depth > DEPTH_MAX) tooDeep = true;
    if (tooDeep) return {};
    return jsonSchema(value, (inner) => converted(inner, depth + 1));
  };
  const found = converted(schema, 0);
  faults.expect(!tooDeep, field, `must be no deeper than ${DEPTH_MAX} schemas`);
  return found as JsonObject;
}

function jsonSchema(schema: JsonObject, inner: (value: JsonValue) => JsonValue): JsonObject {
  const said: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'nullable' || key === 'propertyOrdering') continue;
    said[key] = memberOf(key, value, inner);
  }
  const { type } = said;
  if (schema['nullable'] === true && typeof type === 'string') said['type'] = [type, 'null'];
  return said;
}

function memberOf(key: string, value: JsonValue, inner: (value: JsonValue) => JsonValue): JsonValue {
  switch (key) {
    case 'type':
      return typeof value === 'string' ? value.toLowerCase() : value;
    case 'items':
    case 'additionalProperties':
      return inner(value);
    case 'anyOf':
    case 'prefixItems':
      return Array.isArray(value) ? value.map(inner) : value;
    case 'properties':
      return isObject(value)
        ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inner(one)]))
        : value;
    default:
      return COUNTS.test(key) && typeof value === 'string' ? Number(value) : value;
  }
}
