// A chat template that takes the first message alone for the system, as those of Qwen3.5 and later, and what Claude Code and
// Codex say as the system behind it.
import { expect } from 'chai';
import { startTestEngine } from '../../examples/scripted-engine/testing.ts';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { arrayOf, type JsonObject, objectOf } from '../../services/llm-proxy/domain/json.ts';
import { promptsOf, TestProxy } from '../support/llm-proxy.ts';
import { type RawAnswer, RawEngine } from '../support/raw-engine.ts';

const KINDS = ['vllm', 'sglang', 'llamacpp'] as const;
type Kind = (typeof KINDS)[number];

const WORDS = 'System message must be at the beginning.';
/** As vLLM 0.32, SGLang 0.5.23 and llama-server say it. */
const REFUSALS: Readonly<Record<Kind, RawAnswer>> = {
  vllm: { status: 400, body: { error: { message: WORDS, type: 'BadRequestError', param: null, code: 400 } } },
  sglang: { status: 400, body: { object: 'error', message: WORDS, type: 'BadRequestError', code: 400 } },
  llamacpp: {
    status: 500,
    body: { error: { code: 500, message: `\nError: Jinja Exception: ${WORDS}`, type: 'server_error' } },
  },
};

const rolesIn = (body: unknown): unknown[] =>
  arrayOf(objectOf(body)['messages']).map((message) => objectOf(message)['role']);

type Inner = Awaited<ReturnType<typeof startTestEngine>>;

/** The scripted engine with such a template in front. */
class StrictEngine implements AsyncDisposable {
  readonly raw: RawEngine;
  /** Conversations that were refused. */
  refused = 0;
  readonly #inner: Inner;

  private constructor(raw: RawEngine, inner: Inner, kind: Kind) {
    this.raw = raw;
    this.#inner = inner;
    raw.answer = async ({ method, path, body }) => {
      if (rolesIn(body).lastIndexOf('system') > 0) {
        this.refused++;
        return REFUSALS[kind];
      }
      const headers = { 'content-type': 'application/json' };
      const init = body === undefined ? { method } : { method, headers, body: JSON.stringify(body) };
      const answer = await fetch(inner.url + path, init);
      const type = answer.headers.get('content-type') ?? '';
      return { status: answer.status, type, body: await answer.text() };
    };
  }

  static async start(kind: Kind): Promise<StrictEngine> {
    const script =
      'when: count\nvariants: [{ name: a, steps: [{ text: One. }, { text: Two. }, { text: Three. }] }]';
    const inner = await startTestEngine({ dialect: kind, script });
    return new StrictEngine(await RawEngine.start(() => ({ body: {} })), inner, kind);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.raw[Symbol.asyncDispose]();
    await this.#inner[Symbol.asyncDispose]();
  }
}

describe('what is said as the system behind the first message', () => {
  for (const kind of KINDS) {
    describe(`before ${kind}, whose template refuses it`, () => {
      let engine: StrictEngine;
      let proxy: TestProxy;
      before(async () => {
        engine = await StrictEngine.start(kind);
        proxy = await TestProxy.start({ engineUrl: engine.raw.url, kind, inference: { mode: 'token' } });
      });
      after(async () => {
        await proxy[Symbol.asyncDispose]();
        await engine[Symbol.asyncDispose]();
      });

      const post = async (capability: string, path: string, body: object): Promise<JsonObject> => {
        const headers = { 'content-type': 'application/json' };
        const init = { method: 'POST', headers, body: JSON.stringify(body) };
        const answer = await fetch(`${proxy.url}/s/${capability}${path}`, init);
        const text = await answer.text();
        expect(answer.status, text).to.equal(200);
        return JSON.parse(text) as JsonObject;
      };

      const expectExtended = (records: readonly Completion[]): void => {
        const [first = [], second = []] = promptsOf(records);
        expect(records.map(({ mode, drift }) => [mode, drift])).to.deep.equal([
          ['text', ''],
          ['token', ''],
        ]);
        expect(second.slice(0, first.length)).to.deep.equal(first);
      };

      it('is the user’s, in its place, as Claude Code says it', async () => {
        const capability = await proxy.admit('claude');
        const messages: object[] = [
          { role: 'user', content: 'count' },
          { role: 'system', content: 'The day is long.' },
        ];
        const ask = (): Promise<JsonObject> =>
          post(capability, '/v1/messages', { max_tokens: 99, system: 'Be brief.', messages });
        const { content } = await ask();
        messages.push({ role: 'assistant', content }, { role: 'system', content: 'It is late.' });
        messages.push({ role: 'user', content: 'more' });
        await ask();
        const records = await proxy.records('claude');
        for (const { normalisedBy } of records) expect(normalisedBy).to.deep.equal(['late-system']);
        expectExtended(records);
      });

      it('is so as Codex says it, and where a request goes on from the reply', async () => {
        const capability = await proxy.admit('codex');
        const developer = (content: string): object => ({ role: 'developer', content });
        const input = [developer('Skills.'), developer('More.'), { role: 'user', content: 'count' }];
        const first = await post(capability, '/v1/responses', { instructions: 'Be brief.', input });
        const next = { instructions: 'Be brief.', previous_response_id: first['id'], input: 'more' };
        await post(capability, '/v1/responses', next);
        const records = await proxy.records('codex');
        expect(records[0]?.messageDigests).to.have.length(4);
        expect(records[1]?.baseMessageCount).to.equal(5);
        // What it goes on from is the user's already.
        expect(records.map(({ normalisedBy }) => normalisedBy)).to.deep.equal([['late-system'], []]);
        expectExtended(records);
      });

      it('is counted so', async () => {
        const capability = await proxy.admit('counted');
        const said = [
          { role: 'user', content: 'count' },
          { role: 'system', content: 'Briefly.' },
        ];
        const asUser = [said[0], { role: 'user', content: 'Briefly.' }];
        const counts = [said, asUser].map((messages) =>
          post(capability, '/v1/messages/count_tokens', { messages }),
        );
        const [late, user] = await Promise.all(counts);
        expect(late).to.deep.equal(user);
      });

      it('was refused once, when the engine was asked for it', () => {
        expect(engine.refused).to.equal(1);
      });
    });
  }

  it('stays as it is where the node says so, and is refused by the engine', async () => {
    await using engine = await StrictEngine.start('vllm');
    const node = { normalise: ['billing-header'] };
    await using proxy = await TestProxy.start({ engineUrl: engine.raw.url, kind: 'vllm', node });
    const messages = [
      { role: 'user', content: 'count' },
      { role: 'system', content: 'Briefly.' },
    ];
    const answer = await proxy.chat(await proxy.admit('s'), { model: 'policy', messages });
    expect(answer.status).to.equal(400);
    expect(await answer.text()).to.contain(WORDS);
  });

  it('stays as it is where the engine does not tell, which keeps no call waiting for long', async function () {
    this.timeout(25_000);
    await using engine = await StrictEngine.start('vllm');
    const { answer } = engine.raw;
    const never = new Promise<RawAnswer>(() => {});
    engine.raw.answer = (asked) => (asked.path === '/tokenize' ? never : answer(asked));
    await using proxy = await TestProxy.start({ engineUrl: engine.raw.url, kind: 'vllm' });
    const messages = [
      { role: 'user', content: 'count' },
      { role: 'system', content: 'Briefly.' },
    ];
    const refused = await proxy.chat(await proxy.admit('s'), { model: 'policy', messages });
    expect(refused.status).to.equal(400);
    expect(await refused.text()).to.contain(WORDS);
  });

  it('stays as it is where the template takes it', async () => {
    await using engine = await startTestEngine({
      dialect: 'vllm',
      script: 'when: count\nvariants: [{ name: a, steps: [{ text: One. }] }]',
    });
    await using proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm' });
    const messages = [
      { role: 'user', content: 'count' },
      { role: 'system', content: 'Briefly.' },
    ];
    const answer = await proxy.chat(await proxy.admit('s'), { model: 'policy', messages });
    expect(answer.status).to.equal(200);
    expect((await proxy.records('s'))[0]?.normalisedBy).to.deep.equal([]);
  });
});
