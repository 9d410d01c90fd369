// The google-generate dialect: one content as messages of the conversation, each part in its place.
import { arrayOf, isObject, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { GrownList, GrownSet } from '../grown.ts';
import type { Reading } from '../read-once.ts';
import { openReasoning } from '../sealed-reasoning.ts';
import { BESIDE, contentOf, mediaPart, partsOf, refusePart } from './content.ts';
import { camelCased } from './names.ts';

export interface MadeCall {
  readonly id: string;
  readonly name: string;
}

/** The calls made so far, and the ids of those that have been answered. */
export interface Calls {
  readonly made: GrownList<MadeCall>;
  /** Of those. */
  readonly ids: GrownSet;
  readonly answered: GrownSet;
}

export const NO_CALLS: Calls = { made: GrownList.none(), ids: GrownSet.none, answered: GrownSet.none };

type Turn = Reading<Calls, readonly JsonObject[]>;

export function readTurn(value: JsonObject, calls: Calls, field: string, faults: Faults): Turn {
  const { role = 'user', parts } = camelCased(value);
  const at = `${field}.parts`;
  const given = partsOf(parts, at, faults);
  if (role === 'model') return modelTurn(given, calls, at, faults);
  faults.expect(role === 'user' || role === 'function', `${field}.role`, 'must be one of user, model');
  return userTurn(given, calls, at, faults);
}

function userTurn(parts: readonly JsonObject[], calls: Calls, field: string, faults: Faults): Turn {
  const messages: JsonObject[] = [];
  let after = calls;
  let said: JsonObject[] = [];
  const flush = (): void => {
    if (said.length > 0) messages.push({ role: 'user', content: contentOf(said, field, faults) });
    said = [];
  };
  for (const [i, part] of parts.entries()) {
    if (isObject(part['functionResponse'])) {
      flush();
      const response = camelCased(part['functionResponse']);
      const message = toolMessage(response, after, `${field}[${i}].functionResponse`, faults);
      messages.push(message);
      after = { ...after, answered: after.answered.with([String(message['tool_call_id'])]) };
    } else {
      said.push(part);
    }
  }
  flush();
  return { said: messages, after: after.answered === calls.answered ? calls : after };
}

/** How many calls back the one of an answer without an id is looked for. */
const OPEN_CALLS_MAX = 1_000;

/** The answer to the call of its id, or to the first one of its name that has none yet. */
function toolMessage(
  answer: JsonObject,
  { made, ids, answered }: Calls,
  field: string,
  faults: Faults,
): JsonObject {
  const { id, name, response, parts } = answer;
  const given = textOf(id);
  const named = given !== undefined;
  const isOpen = (one: MadeCall): boolean => one.name === name && !answered.has(one.id);
  const called = named ? (ids.has(given) ? given : undefined) : made.findLately(OPEN_CALLS_MAX, isOpen)?.id;
  const [key, what] = named ? ['id', 'an id'] : ['name', 'the name'];
  faults.expect(called !== undefined, `${field}.${key}`, `must be ${what} of a functionCall before it`);
  const isAnswer = response === undefined || response === null || isObject(response);
  faults.expect(isAnswer, `${field}.response`, 'must be an object');
  const images = arrayOf(parts).flatMap((part, i) =>
    mediaPart(camelCased(part), `${field}.parts[${i}]`, faults),
  );
  const text = answerOf(objectOf(response));
  const content = images.length === 0 ? text : [{ type: 'text', text }, ...images];
  return { role: 'tool', tool_call_id: called ?? '', content };
}

/** A function's answer as text: what it put out, or all of it. */
function answerOf(response: JsonObject): string {
  const { output, ...others } = response;
  return typeof output === 'string' && Object.keys(others).length === 0 ? output : JSON.stringify(response);
}

function modelTurn(parts: readonly JsonObject[], calls: Calls, field: string, faults: Faults): Turn {
  const said: string[] = [];
  const thought: string[] = [];
  let sealed: string | undefined;
  const made: JsonObject[] = [];
  for (const [i, part] of parts.entries()) {
    const { text, thought: isThought, thoughtSignature: seal, functionCall: call } = part;
    if (typeof seal === 'string') sealed ??= openReasoning(seal);
    const at = `${field}[${i}]`;
    if (isObject(call)) made.push(callOf(camelCased(call), calls.made.length + made.length, at, faults));
    else if (typeof text === 'string') (isThought === true ? thought : said).push(text);
    else if (typeof seal !== 'string' || hasData(part)) refusePart(part, at, faults);
  }
  const reasoning = textOf(thought.join('')) ?? sealed ?? '';
  const spoken = said.join('');
  const message: JsonObject = {
    role: 'assistant',
    content: spoken === '' && made.length > 0 ? null : spoken,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(made.length > 0 && { tool_calls: made }),
  };
  if (made.length === 0) return { said: [message], after: calls };
  const now = made.map(({ id, function: of }) => ({ id: String(id), name: String(objectOf(of)['name']) }));
  const ids = calls.ids.with(now.map(({ id }) => id));
  return { said: [message], after: { ...calls, made: calls.made.with(now), ids } };
}

/** Calls without an id are numbered, so that the same conversation reads the same the next time. */
function callOf({ id, name, args }: JsonObject, number: number, field: string, faults: Faults): JsonObject {
  const at = `${field}.functionCall`;
  faults.expect(textOf(name) !== undefined, `${at}.name`, 'must be a string that is not empty');
  const given = args === undefined || args === null || isObject(args);
  faults.expect(given, `${at}.args`, 'must be an object');
  const called = { name: name ?? '', arguments: JSON.stringify(args ?? {}) };
  return { id: textOf(id) ?? `call_${number}`, type: 'function', function: called };
}

/** Anything beside what says something about a part. */
const hasData = (part: JsonObject): boolean => Object.keys(part).some((key) => !BESIDE.includes(key));
