import { expect } from 'chai';
import type { JsonObject } from '../domain/json.ts';
import { anthropicMessages } from './anthropic-messages/dialect.ts';
import type { Dialect } from './dialect.ts';
import { googleGenerate } from './google-generate/dialect.ts';

const CALL = { id: 'c', name: 'f' };

const CASES: readonly { dialect: Dialect; member: string; turns: readonly JsonObject[]; more: JsonObject }[] =
  [
    {
      dialect: anthropicMessages,
      member: 'messages',
      turns: [
        { role: 'user', content: [{ type: 'text', text: 'hello' }] },
        { role: 'assistant', content: [{ type: 'tool_use', ...CALL, input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'x' }] },
      ],
      more: { system: [{ type: 'text', text: 's' }], tools: [{ name: 'f', input_schema: {} }] },
    },
    {
      dialect: googleGenerate,
      member: 'contents',
      turns: [
        { role: 'user', parts: [{ text: 'hello' }] },
        { role: 'model', parts: [{ functionCall: CALL }] },
        { role: 'user', parts: [{ functionResponse: { ...CALL, response: {} } }] },
      ],
      more: {
        systemInstruction: { parts: [{ text: 's' }] },
        tools: [{ functionDeclarations: [{ name: 'f' }] }],
      },
    },
  ];

for (const { dialect, member, turns, more } of CASES) {
  const read = (given: readonly JsonObject[]) =>
    dialect.read({ ...more, [member]: [...given] }, { kind: 'generate', dialect: dialect.name });

  describe(`${dialect.name} of what was read before`, () => {
    it('makes the very same again', () => {
      const first = read(turns);
      const second = read([...turns, structuredClone(turns[0] as JsonObject)]);
      expect(second.tools).to.equal(first.tools);
      expect(second.messages).to.have.length(5);
      for (const [i, message] of first.messages.entries()) expect(second.messages[i]).to.equal(message);
    });

    it('reads an element anew after others, and after a fault', () => {
      read(turns);
      const orphan = [turns[0] as JsonObject, turns[2] as JsonObject];
      for (let i = 0; i < 2; i++) expect(() => read(orphan)).to.throw(/before it/);
      expect(read(turns).messages).to.have.length(4);
    });
  });
}
