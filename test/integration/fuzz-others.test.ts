// Anthropic's and Google's dialects take nearly-requests: each is answered or refused, none does harm.
import { expect } from 'chai';
import { dialectOf } from '../../services/llm-proxy/dialects/dialects.ts';
import { MESSAGES_BODIES } from '../support/anthropic-bodies.ts';
import { fuzzHttp, fuzzReader } from '../support/fuzz.ts';
import { GENERATE_BODIES } from '../support/google-bodies.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { WireEngine } from '../support/wire-engine.ts';

const CASES = [
  { name: 'anthropic-messages', path: 'v1/messages', bodies: MESSAGES_BODIES },
  { name: 'google-generate', path: 'v1beta/models/alias:generateContent', bodies: GENERATE_BODIES },
] as const;

for (const { name, path, bodies } of CASES) {
  describe(`fuzz ${name}`, () => {
    it('reads or refuses 10,000 bodies, and keeps nothing of them', () => {
      const target = { kind: 'generate', dialect: name, model: 'alias' } as const;
      const counts = fuzzReader(dialectOf(name), target, bodies, { seed: 12 });
      expect(counts.read).to.be.greaterThan(1_000);
      expect(counts.refused).to.be.greaterThan(1_000);
    });

    it('answers 300 of them over HTTP, with no 5xx', async () => {
      await using engine = await WireEngine.start('vllm');
      await using proxy = await TestProxy.start({
        engineUrl: engine.url,
        kind: 'vllm',
        node: { image_urls: true },
      });
      await fuzzHttp(`${proxy.url}/s/${await proxy.admit(`fuzz-${name}`)}/${path}`, bodies);
    });
  });
}
