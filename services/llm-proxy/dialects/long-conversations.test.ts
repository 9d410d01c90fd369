import process from 'node:process';
import { expect } from 'chai';
import { heldBytes } from '../../../test/support/held-bytes.ts';
import type { JsonObject } from '../domain/json.ts';
import { dialectOf, MESSAGES_MAX, readRequest } from './dialects.ts';

const ALLOWED = { imageUrls: false };
const TURNS = 5_000;
const HEAP_BYTES_MAX = 100 * 1024 * 1024;
/** Without a limit they take 30 s of CPU. */
const [PARTS, READ_CPU_MS_MAX] = [40_000, 3_000];

/** Each turn calls a tool, and the next one answers. */
const CONVERSATIONS = {
  'anthropic-messages': {
    member: 'messages',
    turn: (i: number): JsonObject[] => [
      { role: 'assistant', content: [{ type: 'tool_use', id: `call_${i}`, name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: `call_${i}`, content: 'x' }] },
    ],
  },
  'google-generate': {
    member: 'contents',
    turn: (i: number): JsonObject[] => [
      { role: 'model', parts: [{ functionCall: { id: `call_${i}`, name: 'f', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { id: `call_${i}`, name: 'f', response: {} } }] },
    ],
  },
} as const;

describe('a long conversation', () => {
  for (const [name, { member, turn }] of Object.entries(CONVERSATIONS)) {
    const dialect = dialectOf(name as keyof typeof CONVERSATIONS);
    const read = (messages: JsonObject[]) =>
      readRequest(dialect, { [member]: messages }, { kind: 'generate', dialect: dialect.name }, ALLOWED)
        .asked;

    it(`keeps what it is read with once, and not for each of its turns: ${name}`, () => {
      const messages = Array.from({ length: TURNS }, (_, i) => turn(i)).flat();
      const before = heldBytes();
      const kept = read(messages);
      expect(heldBytes() - before).to.be.below(HEAP_BYTES_MAX);
      expect(kept.messages).to.have.length(TURNS * 2);
    });

    it(`has calls of its own where it goes on from another one's middle: ${name}`, () => {
      const shared = [...turn(0), ...turn(1)];
      const [call = {}, answer = {}] = turn(2);
      for (let i = 0; i < 2; i++) {
        expect(read([...shared, call, answer]).messages).to.have.length(6);
        expect(() => read([...shared, answer])).to.throw('must be');
        expect(read([...shared, ...turn(3)]).messages).to.have.length(6);
        expect(() => read([...shared, ...turn(3), answer])).to.throw('must be');
      }
    });

    it(`has an end: ${name}`, () => {
      const message = turn(0)[1] ?? {};
      expect(() => read(Array<JsonObject>(MESSAGES_MAX + 1).fill(message))).to.throw(
        `at most ${MESSAGES_MAX}`,
      );
    });
  }

  it('is read in time where answers say nothing but a name', () => {
    const parts = (part: JsonObject) => Array<JsonObject>(PARTS).fill(part);
    const contents = [
      { role: 'model', parts: parts({ functionCall: { name: 'f' } }) },
      { role: 'user', parts: parts({ functionResponse: { name: 'f' } }) },
    ];
    const before = process.cpuUsage();
    const target = { kind: 'generate', dialect: 'google-generate' } as const;
    expect(() => readRequest(dialectOf('google-generate'), { contents }, target, ALLOWED)).to.throw(
      'must be the name',
    );
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).to.be.below(READ_CPU_MS_MAX);
  });
});
