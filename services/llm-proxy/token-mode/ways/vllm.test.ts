// The limits that vLLM's rendering fills in, against a server that answers what vLLM 0.32 does.
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { type JsonObject, objectOf } from '../../domain/json.ts';
import { noTokens, type Tokens } from '../../domain/tokens.ts';
import { Engine } from '../../engines/engine.ts';
import { VllmWay } from './vllm.ts';

const WINDOW = 131_072;
const RENDERED_IDS = 10;

describe('a call of vLLM with ids', () => {
  const generated: JsonObject[] = [];
  const server = createServer(async (request, response) => {
    response.end(JSON.stringify(await answerOf(request)));
  });
  const made: Disposable[] = [];

  async function answerOf(request: IncomingMessage): Promise<JsonObject> {
    const body = objectOf((await json(request)) as JsonObject);
    if (request.url === '/v1/chat/completions/render') {
      const { max_tokens: most = WINDOW - RENDERED_IDS } = body;
      return { token_ids: Array<number>(RENDERED_IDS).fill(1), sampling_params: { max_tokens: most } };
    }
    if (request.url !== '/inference/v1/generate') return { choices: [] };
    generated.push(body);
    return { choices: [{ index: 0, token_ids: [7] }] };
  }

  before(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });

  after(() => {
    for (const engine of made) engine[Symbol.dispose]();
    server.closeAllConnections();
    server.close();
  });

  /** What the engine is told, and whether it is asked for routed experts, with a prompt of 2,000 ids. */
  async function sentFor(limits: JsonObject): Promise<{ sampling: JsonObject; tokens: Tokens }> {
    const { port } = server.address() as AddressInfo;
    const experts = { layers: 48, topK: 8, experts: 128 };
    const spec = { kind: 'vllm', model: 'm', key: undefined, callsMax: 1, experts } as const;
    const engine = new Engine(`http://127.0.0.1:${port}`, spec);
    made.push(engine);
    const tokens = noTokens();
    const prompt = { behind: 0, tail: Int32Array.of(1), expertRows: 1_500, length: 2_000, text: [] };
    const sent = { messages: [{ role: 'user', content: 'x' }], ...limits };
    const request = { engine, model: 'm', sent, showsLogprobs: false, tokens, prompt };
    await new VllmWay().whole(request, AbortSignal.timeout(10_000));
    return { sampling: objectOf(generated.at(-1)?.['sampling_params']), tokens };
  }

  it('has what is left of the window, and its experts, where the caller sets no limit', async () => {
    const { sampling, tokens } = await sentFor({});
    expect(sampling).to.deep.equal({ max_tokens: WINDOW - 2_000, routed_experts_prompt_start: 1_500 });
    expect(tokens.expertsFrom).to.equal(1_500);
  });

  it('has no experts where the caller asks for more than a reply has room for', async () => {
    const { sampling, tokens } = await sentFor({ max_tokens: 100_000 });
    expect(sampling).to.deep.equal({ max_tokens: 100_000 });
    expect(tokens.expertsFrom).to.equal(undefined);
  });
});
