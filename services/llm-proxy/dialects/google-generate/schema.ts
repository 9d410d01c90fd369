// The google-generate dialect: its schemas, a subset of OpenAPI's, as JSON Schema.
import { parseExact } from '../../domain/exact-numbers.ts';
import { isObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { camelCased, nameOf } from './names.ts';

/** Counts, which the API takes as strings too. */
const COUNTS = /^(min|max)(Items|Length|Properties)$/;

const WHOLE = /^(?:0|[1-9]\d*)$/;

/** In the order of their numbers. */
const TYPES = ['TYPE_UNSPECIFIED', 'STRING', 'NUMBER', 'INTEGER', 'BOOLEAN', 'ARRAY', 'OBJECT', 'NULL'];

export function jsonSchemaOf(schema: JsonObject): JsonObject {
  const { nullable, propertyOrdering: _, ...members } = camelCased(schema);
  const said: JsonObject = {};
  for (const [key, value] of Object.entries(members))
    if (!isGooglesAlone(key, value)) said[key] = memberOf(key, value);
  return nullable === true ? orNull(said) : said;
}

/** They ask for nothing beside the rest, and engines refuse types and formats that they do not know. */
const isGooglesAlone = (key: string, value: JsonValue): boolean =>
  (key === 'type' && nameOf(value, TYPES) === TYPES[0]) || (key === 'format' && value === 'enum');

/** Null is taken where all that the schema asks for takes it. */
function orNull(schema: JsonObject): JsonObject {
  const { type, enum: values, anyOf } = schema;
  return {
    ...schema,
    ...(typeof type === 'string' && { type: [type, 'null'] }),
    ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
    ...(Array.isArray(anyOf) && { anyOf: [...anyOf, { type: 'null' }] }),
  };
}

const within = (value: JsonValue): JsonValue => (isObject(value) ? jsonSchemaOf(value) : value);

function memberOf(key: string, value: JsonValue): JsonValue {
  switch (key) {
    case 'type': {
      const type = nameOf(value, TYPES);
      return typeof type === 'string' ? type.toLowerCase() : type;
    }
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
      return COUNTS.test(key) && typeof value === 'string' && WHOLE.test(value) ? parseExact(value) : value;
  }
}
