// Bodies that are nearly requests: real ones with a few things changed by chance, the same for a seed at each run.
import { expect } from 'chai';
import { PolarError } from '../../services/common/errors.ts';
import type { Asked, Dialect } from '../../services/llm-proxy/dialects/dialect.ts';
import { readRequest } from '../../services/llm-proxy/dialects/dialects.ts';
import { engineBody } from '../../services/llm-proxy/domain/engine-body.ts';
import type { JsonObject, JsonValue } from '../../services/llm-proxy/domain/json.ts';
import { digestMessage } from '../../services/llm-proxy/domain/messages.ts';
import type { GenerateTarget } from '../../services/llm-proxy/domain/paths.ts';
import { chance, pick } from './generated.ts';
import { heldBytes } from './held-bytes.ts';

/** Changes made to one body. */
const CHANGES_MAX = 4;
/** Heap that reading 10,000 bodies may leave behind: caches of patterns and shapes, not bodies. */
const GROWTH_BYTES_MAX = 8 * 1024 * 1024;

const deep = (depth: number): JsonValue => {
  let value: JsonValue = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
};

const ODD: readonly (() => JsonValue)[] = [
  () => null,
  () => true,
  () => -1,
  () => 1e308,
  () => 0.5,
  () => '',
  () => 'x',
  () => '\ud800 lone',
  () => '__proto__',
  () => 'data:image/png;base64,AAAA',
  () => 'toString',
  () => 'y'.repeat(5_000),
  () => [],
  () => ({}),
  () => [[]],
  () => [null, {}],
  () => ({ type: 'text', text: 1 }),
  () => ({ type: {} }),
  () => JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}') as JsonValue,
  () => deep(50),
  () => deep(400),
];

type Holder = JsonObject | JsonValue[];

/** Some object or array in a value, at any depth. */
function someHolder(value: Holder, random: () => number): Holder {
  let holder = value;
  for (;;) {
    const inner = Object.values(holder).filter(
      (one): one is Holder => typeof one === 'object' && one !== null,
    );
    if (inner.length === 0 || random() < 0.25) return holder;
    holder = pick(random, inner);
  }
}

/** Change one thing; `other` is a body to take a part from. */
function change(body: JsonObject, other: JsonObject, random: () => number): void {
  const holder = someHolder(body, random) as Record<string, JsonValue>;
  const keys = Object.keys(holder);
  const key = keys.length === 0 ? '0' : pick(random, keys);
  const odd = pick(random, ODD);
  switch (Math.floor(random() * 7)) {
    case 0:
      if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else delete holder[key];
      return;
    case 1:
    case 2:
      holder[key] = odd();
      return;
    case 3:
      if (Array.isArray(holder))
        holder.splice(Number(key), 0, structuredClone(pick(random, holder)) ?? odd());
      else
        Object.defineProperty(
          holder,
          pick(random, ['__proto__', 'extra', 'type', 'role', 'content']),
          own(odd()),
        );
      return;
    case 4:
      holder[key] = [holder[key] ?? null];
      return;
    case 5:
      holder[key] = structuredClone(someHolder(other, random)) as JsonValue;
      return;
    default:
      if (Array.isArray(holder)) holder.reverse();
      else holder[key] = String(holder[key]);
  }
}

const own = (value: JsonValue): PropertyDescriptor => ({
  value,
  enumerable: true,
  configurable: true,
  writable: true,
});

/** `count` bodies made of the real ones. */
function* mutants(seed: number, bodies: readonly JsonObject[], count: number): Generator<JsonObject> {
  const random = chance(seed);
  for (let n = 0; n < count; n++) {
    const body = structuredClone(pick(random, bodies));
    const changes = 1 + Math.floor(random() * CHANGES_MAX);
    for (let i = 0; i < changes; i++) change(body, pick(random, bodies), random);
    yield body;
  }
}

export interface FuzzCounts {
  read: number;
  refused: number;
}

/** Each is read, or refused with the names of its faults. What is read can be sent, digested and answered. */
export function fuzzReader(
  dialect: Dialect,
  target: GenerateTarget,
  bodies: readonly JsonObject[],
  { seed = 1, count = 10_000 } = {},
): FuzzCounts {
  const counts = { read: 0, refused: 0 };
  const before = heldBytes();
  for (const body of mutants(seed, bodies, count)) {
    const asked = readOrRefuse(dialect, target, body);
    if (asked === undefined) counts.refused++;
    else counts.read++;
    if (asked !== undefined) checkAsked(asked);
  }
  expect(heldBytes() - before, 'bytes left behind').to.be.below(GROWTH_BYTES_MAX);
  expect(Object.getOwnPropertyNames(Object.prototype)).to.not.include('polluted');
  return counts;
}

function readOrRefuse(dialect: Dialect, target: GenerateTarget, body: JsonObject): Asked | undefined {
  try {
    return readRequest(dialect, body, target, { imageUrls: true }).asked;
  } catch (error) {
    const told = error instanceof PolarError && error.reason === 'DIALECT_INVALID' && error.fields.length > 0;
    if (!told) throw new Error(`neither read nor refused: ${shown(body)}`, { cause: error });
    const size = JSON.stringify(dialect.errorBody(error, 400)).length;
    if (size < 20 || size > 20_000) throw new Error(`an error of ${size} characters: ${shown(body)}`);
    return undefined;
  }
}

function checkAsked(asked: Asked): void {
  if (asked.messages.length === 0) throw new Error('a conversation of nothing');
  for (const message of asked.messages) {
    if (typeof message['role'] !== 'string') throw new Error(`a message of nobody: ${shown(message)}`);
    digestMessage(message);
  }
  JSON.stringify(engineBody(asked, 'served', {}, undefined));
  const writer = asked.writer('shown');
  const message = {
    role: 'assistant',
    content: 'x',
    tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{' } }],
  };
  writer.whole({ id: 'r', choices: [{ index: 0, message, finish_reason: 'stop' }] });
  const stream = writer.stream();
  stream.chunk({ id: 'r', choices: [{ index: 0, delta: message, finish_reason: 'stop' }] });
  stream.end();
}

const shown = (body: JsonObject): string => {
  try {
    return JSON.stringify(body).slice(0, 2_000);
  } catch {
    return 'a body that is too deep to be shown';
  }
};

/** Some bodies over HTTP: answered with 200 or refused with 4xx in JSON, and a real one is answered after them. */
export async function fuzzHttp(
  url: string,
  bodies: readonly JsonObject[],
  { seed = 2, count = 300 } = {},
): Promise<void> {
  const post = (body: JsonObject): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const statuses = new Set<number>();
  for (const body of mutants(seed, bodies, count)) {
    const answer = await post(body);
    const text = await answer.text();
    statuses.add(answer.status);
    expect(answer.status, `${shown(body)}\n${text}`).to.be.oneOf([200, 400]);
    if (answer.status !== 200) expect(() => JSON.parse(text), text).to.not.throw();
  }
  expect([...statuses].sort()).to.deep.equal([200, 400]);
  for (const body of bodies) expect((await post(body)).status).to.equal(200);
}
