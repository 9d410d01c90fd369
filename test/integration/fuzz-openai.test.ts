// OpenAI's dialects take nearly-requests: each is answered or refused, none does harm.
import { expect } from 'chai';
import { dialectOf } from '../../services/llm-proxy/dialects/dialects.ts';
import type { JsonObject } from '../../services/llm-proxy/domain/json.ts';
import { fuzzHttp, fuzzReader } from '../support/fuzz.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { CHAT_BODIES, RESPONSES_BODIES } from '../support/openai-bodies.ts';
import { WireEngine } from '../support/wire-engine.ts';

const CASES = [
  { name: 'openai-chat', path: 'chat/completions', bodies: CHAT_BODIES },
  { name: 'openai-responses', path: 'responses', bodies: RESPONSES_BODIES },
] as const;

for (const { name, path, bodies } of CASES) {
  describe(`fuzz ${name}`, () => {
    it('reads or refuses 10,000 bodies, and keeps nothing of them', () => {
      const counts = fuzzReader(dialectOf(name), { kind: 'generate', dialect: name }, bodies, { seed: 11 });
      expect(counts.read).to.be.greaterThan(1_000);
      expect(counts.refused).to.be.greaterThan(1_000);
    });

    it('answers 300 of them over HTTP, with no 5xx', async () => {
      await using engine = await WireEngine.start('vllm');
      await using proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm' });
      const capability = await proxy.admit(`fuzz-${name}`);
      const url = `${proxy.url}/s/${capability}/v1/${path}`;
      await fuzzHttp(url, bodies as readonly JsonObject[]);
      await refusesDeep(url, bodies[0] as JsonObject);
    });
  });
}

/** Nested so deep that no JSON writer that calls itself could make it. */
async function refusesDeep(url: string, body: JsonObject): Promise<void> {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000);
  const text = JSON.stringify({ ...body, tools: [] }).replace('"tools":[]', `"tools":[${deep}]`);
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: text,
  });
  expect(answer.status).to.equal(400);
  expect((await answer.json()) as object).to.have.nested.property('error.param', 'tools');
}
