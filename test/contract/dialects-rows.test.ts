// Each row of docs/dialects.md for Anthropic's and Google's dialects is true: what is taken stands in a request that is
// taken, what is refused is refused by its name.
import { expect } from 'chai';
import { dialectOf } from '../../services/llm-proxy/dialects/dialects.ts';
import type { Feature } from '../../services/llm-proxy/dialects/features.ts';
import type { JsonObject } from '../../services/llm-proxy/domain/json.ts';
import { MESSAGES_BODIES } from '../support/anthropic-bodies.ts';
import { GENERATE_BODIES } from '../support/google-bodies.ts';

const CASES = [
  { name: 'anthropic-messages', bodies: MESSAGES_BODIES },
  { name: 'google-generate', bodies: GENERATE_BODIES },
] as const;

const camelCase = (key: string): string =>
  key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

for (const { name, bodies } of CASES) {
  const dialect = dialectOf(name);
  const read = (body: JsonObject) =>
    dialect.read(body, { kind: 'generate', dialect: name }, { imageUrls: true });
  const rows = (dialect.features ?? []).filter((row) => row.part !== 'paths' && !row.name.includes(' '));

  describe(`rows of ${name}`, () => {
    it('that are taken stand in requests that are taken', () => {
      for (const body of bodies) read(body);
      const words = new Set<string>();
      JSON.stringify(bodies, (key, value: unknown) => {
        for (const word of [key, value]) if (typeof word === 'string') words.add(word).add(camelCase(word));
        return value;
      });
      const missing = rows.filter((row) => row.support !== 'refused' && !words.has(row.name));
      expect(missing).to.deep.equal([]);
    });

    it('that are refused are refused by their name', () => {
      const refused = rows.filter((row) => row.support === 'refused');
      expect(refused).to.not.have.length(0);
      for (const row of refused) expect(() => read(withRow(bodies.at(-1), row)), row.name).to.throw(row.name);
    });
  });
}

/** A request that asks for what the row is about. */
function withRow(body: JsonObject | undefined, { part, name }: Feature): JsonObject {
  return part === 'fields' ? { ...body, [name]: 'x' } : { ...body, [part]: { [name]: ['x'] } };
}
