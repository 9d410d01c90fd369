import { expect } from 'chai';
import { seeded } from '../../../test/support/laws.ts';
import { PolarError } from '../../common/errors.ts';
import { Bytes } from '../domain/bytes.ts';
import { forTemplate } from '../domain/engine-body.ts';
import type { JsonObject, JsonValue } from '../domain/json.ts';
import { KnownBodies } from '../domain/known-bodies.ts';
import { CONVERSATION_IN } from '../domain/known-body.ts';
import { digestIn, digestMessage } from '../domain/messages.ts';
import { normalised, RULE_NAMES } from '../domain/normalise.ts';
import { Notes } from '../domain/notes.ts';
import type { DialectName } from '../domain/paths.ts';
import { sketchOf } from '../domain/template-sketch.ts';
import { dialectOf, readRequest } from './dialects.ts';

const TURNS = 150;
const ALLOWED = { imageUrls: false };
const MARK = { cache_control: { type: 'ephemeral' } };
const text = (n: number, more = {}): JsonObject => ({ type: 'text', text: `t${n % 10}`, ...more });

/** An element of each kind, some of which have a fault, or have one where they stand. */
const ELEMENTS: Readonly<Record<DialectName, (n: number) => JsonObject[]>> = {
  'openai-chat': (n) => [
    { role: 'system', content: `s${n % 10}` },
    { role: 'developer', content: `d${n % 10}` },
    { role: 'user', content: `u${n % 10}` },
    { role: 'user', content: [text(n, MARK)], __own: n },
    { role: 'assistant', content: `a${n % 10}`, name: 'agent' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `c${n % 4}`, type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: `c${n % 4}`, content: 'r' },
    { role: 'assistant', content: null, function_call: { name: `f${n % 2}`, arguments: '{}' } },
    { role: 'function', name: `f${n % 2}`, content: 'r' },
    { role: 'user', content: n % 7 === 0 ? n : 'x' },
  ],
  'openai-responses': (n) => [
    { role: 'user', content: `u${n % 10}` },
    { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: `t${n % 10}` }] },
    { role: 'assistant', content: `a${n % 10}` },
    { type: 'function_call', call_id: `c${n % 4}`, name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: `c${n % 4}`, output: 'r' },
    { role: 'user', content: n % 7 === 0 ? n : 'x' },
  ],
  'anthropic-messages': (n) => [
    { role: 'user', content: `u${n % 10}` },
    { role: 'user', content: [text(n, MARK)] },
    { role: 'assistant', content: [text(n), { type: 'tool_use', id: `c${n % 4}`, name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: `c${n % 4}`, content: 'r' }] },
    { role: 'user', content: n % 7 === 0 ? n : 'x' },
  ],
  'google-generate': (n) => [
    { role: 'user', parts: [{ text: `u${n % 10}` }] },
    { role: 'model', parts: [{ functionCall: { name: `f${n % 2}`, args: {} } }] },
    { role: 'user', parts: [{ functionResponse: { name: `f${n % 2}`, response: {} } }] },
    { role: 'user', parts: n % 7 === 0 ? n : [{ text: 'x' }] },
  ],
};

const session = {
  restore: (message: JsonObject): JsonObject => message,
  unnamed: ({ name: _, ...message }: JsonObject): JsonObject => message as JsonObject,
};

/** All that a call makes of a body's conversation, or the fields of its faults. */
function made(name: DialectName, body: JsonObject, notes: Notes) {
  const target = { kind: 'generate', dialect: name, model: 'm', stream: false } as const;
  try {
    const { asked, values } = readRequest(dialectOf(name), body, target, ALLOWED, { notes });
    const { messages, by } = normalised(asked.messages, RULE_NAMES, session, notes);
    const digests = notes.each(notes.each(messages, digestMessage), digestIn);
    const turn = { role: 'assistant', content: 'x' };
    const { before } = sketchOf({ before: messages, turn }, [], true, notes);
    return { values, messages, by, digests, before, templated: notes.each(messages, forTemplate) };
  } catch (error) {
    if (!(error instanceof PolarError)) throw error;
    return error.fields;
  }
}

for (const name of Object.keys(ELEMENTS) as DialectName[]) {
  const member = CONVERSATION_IN[name];

  describe(`${name} behind what is known of a session`, () => {
    it('reads as from nothing: grown, edited in place, cut, compacted, beside another attempt', () => {
      const random = seeded(7);
      const pick = (n: number): number => Math.floor(random() * n);
      const some = (): JsonObject => {
        const kinds = ELEMENTS[name](pick(100));
        return kinds[pick(kinds.length)] as JsonObject;
      };
      const bodies = new KnownBodies();
      const attempts = [{ list: [some()] }, { list: [some()] }];
      const counts = { read: 0, refused: 0 };
      for (let turn = 0; turn < TURNS; turn++) {
        const attempt = attempts[pick(2)] as { list: JsonValue[] };
        attempt.list = changed(attempt.list, some, pick);
        const whole = { model: 'm', [member]: attempt.list, ...(pick(5) === 0 && { stream: false }) };
        const came = new Bytes([Buffer.from(JSON.stringify(whole))]);
        const read = bodies.read(attempt, came, member);
        const known = made(name, read.body.value as JsonObject, read.body.notes);
        expect(known).to.deep.equal(made(name, structuredClone(whole), new Notes()));
        if (Array.isArray(known)) {
          counts.refused++;
          attempt.list = [some()];
        } else {
          counts.read++;
          bodies.keep(attempt, read, 1);
        }
      }
      expect(counts.read).to.be.above(TURNS / 4);
      expect(counts.refused).to.be.above(5);
    });
  });
}

/** What a harness may make of a conversation until its next request. */
function changed(
  list: readonly JsonValue[],
  some: () => JsonObject,
  pick: (n: number) => number,
): JsonValue[] {
  const place = pick(list.length);
  switch (pick(12)) {
    case 0:
      return list.with(place, some());
    case 1:
      return [...list.slice(0, place + 1)];
    case 2:
      return [...list.slice(0, 1), some(), ...list.slice(place)];
    default:
      return [...list, ...Array.from({ length: 1 + pick(2) }, some)];
  }
}
