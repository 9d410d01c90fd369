// What vLLM's rendering fills in, against a server that answers what vLLM 0.32 does.
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { arrayOf, type JsonObject, objectOf } from '../../domain/json.ts';
import { noTokens, type Tokens } from '../../domain/tokens.ts';
import { Engine } from '../../engines/engine.ts';
import { VllmWay } from './vllm.ts';

const WINDOW = 131_072;
const RENDERED_IDS = 10;
const PARSER = { chat_template_kwargs: { enable_thinking: false } };

describe('a call of vLLM with ids', () => {
  const generated: JsonObject[] = [];
  const derendered: JsonObject[] = [];
  /** What rendering says beside ids and sampling. */
  let rendered: JsonObject = {};
  let renderings = 0;
  let silent = false;
  const server = createServer(async (request, response) => {
    response.end(JSON.stringify(await answerOf(request)));
  });
  const made: Disposable[] = [];

  async function answerOf(request: IncomingMessage): Promise<JsonObject> {
    const body = objectOf((await json(request)) as JsonObject);
    if (request.url === '/v1/chat/completions/render') {
      renderings++;
      if (silent) return await new Promise(() => {});
      const { max_tokens: most = WINDOW - RENDERED_IDS } = body;
      const sampling = { max_tokens: most };
      return { token_ids: Array<number>(RENDERED_IDS).fill(1), sampling_params: sampling, ...rendered };
    }
    if (request.url === '/inference/v1/generate') {
      generated.push(body);
      return { choices: [{ index: 0, token_ids: [7], finish_reason: 'length' }] };
    }
    derendered.push(body);
    const { choices } = objectOf(body['generate_response']);
    return { choices: arrayOf(choices).map((choice) => ({ ...objectOf(choice), message: {} })) };
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
  async function sentFor(
    limits: JsonObject,
    way = new VllmWay(),
  ): Promise<{ sampling: JsonObject; tokens: Tokens }> {
    const { port } = server.address() as AddressInfo;
    const experts = { layers: 48, topK: 8, experts: 128 };
    const spec = { kind: 'vllm', model: 'm', key: undefined, callsMax: 1, experts } as const;
    const engine = new Engine(`http://127.0.0.1:${port}`, spec);
    made.push(engine);
    const tokens = noTokens();
    const tail = Int32Array.from({ length: 20 }, (_, i) => i);
    const prompt = { behind: 0, tail, expertRows: 1_500, length: 2_000, text: [], calls: 0 };
    const sent = { messages: [{ role: 'user', content: 'x' }], ...limits };
    const request = { engine, model: 'm', sent, showsLogprobs: false, tokens, prompt };
    await way.whole(request, AbortSignal.timeout(10_000));
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

  it('has the settings of the reasoning parser, behind which alone grammars hold', async () => {
    const told = async (more: JsonObject): Promise<JsonObject> => {
      rendered = more;
      await sentFor({});
      const { reasoning_ended, reasoning_parser_kwargs } = generated.at(-1) as JsonObject;
      return JSON.parse(JSON.stringify({ reasoning_ended, reasoning_parser_kwargs }));
    };
    expect(await told({ reasoning_ended: true, reasoning_parser_kwargs: PARSER })).to.deep.equal({
      reasoning_ended: true,
      reasoning_parser_kwargs: PARSER,
    });
    // So it is in the rendered prompt, which is another one.
    expect(await told({ reasoning_ended: false, reasoning_parser_kwargs: PARSER })).to.deep.equal({
      reasoning_parser_kwargs: PARSER,
    });
    expect(await told({ reasoning_ended: null, reasoning_parser_kwargs: null })).to.deep.equal({});
  });

  it('has its parameters rendered once, where they are not too long to be kept', async () => {
    const renderedFor = async (stop: string): Promise<number> => {
      rendered = { sampling_params: { stop, max_tokens: 9 } };
      const way = new VllmWay();
      renderings = 0;
      for (let i = 0; i < 3; i++)
        expect((await sentFor({ stop, max_tokens: 9 }, way)).sampling['stop']).to.equal(stop);
      return renderings;
    };
    expect(await renderedFor('x')).to.equal(1);
    expect(await renderedFor('x'.repeat(100_000))).to.equal(3);
    rendered = {};
  });

  it('is unavailable where nothing comes of its rendering, so that it is asked again', async () => {
    silent = true;
    const error = await sentFor({}, new VllmWay(1)).catch((thrown) => thrown);
    silent = false;
    expect(error).to.include({ reason: 'ENGINE_UNAVAILABLE' });
    expect(error.message).to.match(/no rendering within 1 ms/);
  });

  it('is derendered with the end of the prompt, upon which the blank before the first word depends', async () => {
    await sentFor({});
    expect(derendered.at(-1)?.['prompt_token_ids']).to.deep.equal([12, 13, 14, 15, 16, 17, 18, 19]);
  });
});
