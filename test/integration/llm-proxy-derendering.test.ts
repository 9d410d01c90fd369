// Token mode at vLLM: what a harness gets is what it would have got in text mode, and what is sampled is recorded whatever becomes
// of its derendering.
import { expect } from 'chai';
import { BASH, startTestEngine } from '../../examples/scripted-engine/testing.ts';
import { unpackIds } from '../../services/common/columns.ts';
import { AgentSession, lawsBroken } from '../support/agent-session.ts';
import { readEvents, TestProxy } from '../support/llm-proxy.ts';
import { type RawAnswer, RawEngine } from '../support/raw-engine.ts';

const SCRIPT = `
when: count
variants:
  - name: counts
    steps:
      - { text: Let me look., calls: [{ shell: ls }] }
      - { think: Two of them., text: 'Again, STOP here.', calls: [{ shell: ls }, { shell: cat x }] }
      - { text: That is all. }
`;
const GENERATE = '/inference/v1/generate';
const DERENDER = '/v1/chat/completions/derender';
type Override = (path: string, body: unknown) => RawAnswer | undefined;

/** vLLM, with answers of its own where `override` has some. */
async function staged(mode: 'text' | 'token', override: Override = () => undefined) {
  const engine = await startTestEngine({ dialect: 'vllm', script: SCRIPT });
  const front = await RawEngine.start(async ({ method, path, body }): Promise<RawAnswer> => {
    const own = override(path, body);
    if (own !== undefined) return own;
    const sent = method === 'GET' ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(engine.url + path, { method, ...sent });
    const type = answer.headers.get('content-type') ?? 'application/json';
    return { status: answer.status, type, body: await answer.text() };
  });
  const proxy = await TestProxy.start({ engineUrl: front.url, kind: 'vllm', inference: { mode } });
  return {
    front,
    proxy,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await front[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    },
  };
}

/** The second turn of a session: the first one that can be of token mode. */
async function secondTurn(proxy: TestProxy, session: string, stream: boolean, fields: object = {}) {
  const options = { stream, tools: [BASH] };
  const capability = await proxy.admit(session);
  const agent = new AgentSession(proxy, capability, 'count the files', options);
  await agent.work(1);
  const body = { model: 'policy', messages: agent.messages, stream, tools: [BASH], ...fields };
  return await proxy.chat(capability, body);
}

interface Told {
  readonly finish_reason: string | null;
  readonly message?: Record<string, unknown>;
  readonly delta?: Record<string, unknown>;
}

/** What a harness is told, but for ids that each call has of its own. */
async function told(answer: Response, stream: boolean): Promise<unknown> {
  const events = stream ? (await readEvents(answer)).events.slice(0, -1) : [await answer.text()];
  const choices = events.flatMap((event) => (JSON.parse(event) as { choices: Told[] }).choices);
  const said = choices.map(({ message, delta }) => message ?? delta ?? {});
  const textOf = (key: string) => said.map((one) => one[key] ?? '').join('');
  const calls = said.flatMap(({ tool_calls }) => (tool_calls ?? []) as { function: object }[]);
  return {
    content: textOf('content'),
    thought: textOf('reasoning_content'),
    calls: stream ? new Set(calls.map((one) => (one as { index?: number }).index)).size : calls.length,
    finish: choices.map(({ finish_reason: word }) => word).filter((word) => word !== null),
  };
}

describe('a reply of token mode at vllm', () => {
  const CASES: Record<string, object> = {
    'that calls tools': {},
    'with one call of two': { parallel_tool_calls: false, tools: [BASH] },
    'that ends at a stop string': { stop: ['STOP', 'x'] },
    'that ends at a limit': { max_tokens: 12 },
    'that is thought': { max_tokens: 4 },
  };
  for (const [name, fields] of Object.entries(CASES)) {
    it(`is what text mode gives: one ${name}`, async () => {
      const replies: Record<string, unknown> = {};
      for (const mode of ['text', 'token'] as const) {
        await using stage = await staged(mode);
        for (const stream of [false, true]) {
          const answer = await secondTurn(stage.proxy, `s-${stream}`, stream, fields);
          replies[`${mode} ${stream}`] = await told(answer, stream);
          const records = await stage.proxy.records(`s-${stream}`);
          expect(records[1]).to.include({ mode, drift: '' });
        }
      }
      const one = 'parallel_tool_calls' in fields;
      const expected = replies['text false'] as { calls: number };
      // The scripted engine's chats make all of them.
      expect(replies['token false']).to.deep.equal(one ? { ...expected, calls: 1 } : expected);
      expect(replies['token true']).to.deep.equal(replies['token false']);
    });
  }
});

describe('several replies of token mode at vllm', () => {
  it('have the weights that sampled each of them', async () => {
    const ids = [65, 66, 67];
    const choices = [[ids.length], [1, ids.length]].map((ends, index) => ({
      index,
      token_ids: ids,
      finish_reason: 'length',
      logprobs: { content: ids.map((token_id) => ({ token_id, logprob: -1 })) },
      weight_versions: ends.map((end, i) => ({ version: String(7 + i), start: ends[i - 1] ?? 0, end })),
    }));
    await using stage = await staged('token', (path) =>
      path === GENERATE ? { body: { request_id: 'r', model: 'm', choices } } : undefined,
    );
    expect((await secondTurn(stage.proxy, 's', false, { n: choices.length })).status).to.equal(200);
    const [, ...records] = await stage.proxy.records('s');
    const weights = records.map(({ policyVersion, policySpans }) => ({
      policyVersion,
      ends: policySpans.map(({ policyVersion: version, end }) => [version, end]),
    }));
    expect(weights).to.deep.equal([
      { policyVersion: 7n, ends: [] },
      {
        policyVersion: 7n,
        ends: [
          [7n, 1],
          [8n, 3],
        ],
      },
    ]);
  });
});

describe('what is sampled before derendering fails', () => {
  const ERROR = { error: { message: 'the tokenizer fell over', code: 500 } };

  it('is derendered again, and not sampled again', async () => {
    let failures = 1;
    await using stage = await staged('token', (path) =>
      path === DERENDER && failures-- > 0 ? { status: 500, body: ERROR } : undefined,
    );
    const answer = await secondTurn(stage.proxy, 's', false);
    expect(await told(answer, false)).to.deep.include({ calls: 2, finish: ['tool_calls'] });
    expect(stage.front.at(DERENDER)).to.have.length(2);
    expect(stage.front.at(GENERATE)).to.have.length(1);
    const records = await stage.proxy.records('s');
    expect(records.map(({ engineTries }) => engineTries)).to.deep.equal([1, 1]);
  });

  for (const stream of [false, true]) {
    it(`is recorded where it fails for good (${stream ? 'streamed' : 'whole'})`, async () => {
      const ids: number[] = [];
      await using stage = await staged('token', (path, body) => {
        if (path !== DERENDER) return undefined;
        const { generate_response: from } = body as {
          generate_response: { choices: { token_ids: number[] }[] };
        };
        ids.push(...(from.choices[0]?.token_ids ?? []));
        return { status: 400, body: ERROR };
      });
      const answer = await secondTurn(stage.proxy, 's', stream);
      expect(answer.status).to.equal(502);
      expect(await answer.text()).to.include('the tokenizer fell over');
      const records = await stage.proxy.records('s');
      expect(records).to.have.length(2);
      expect(records[1]).to.include({
        finishReason: 'error',
        errorReason: 'ENGINE_ERROR',
        replyDigest: '',
        mode: 'token',
      });
      // All that were sampled: the end of the turn, too, which is not derendered.
      const sampled = [...unpackIds(records[1]!.sampledIds)];
      expect(sampled.slice(0, -1)).to.deep.equal(ids);
      expect(records[1]!.logprobs).to.have.length(records[1]!.sampledIds.length);
      expect(lawsBroken(records)).to.deep.equal([]);
    });
  }

  it('is no refusal of the request where the engine gave it up before its first token', async () => {
    const choice = { index: 0, finish_reason: 'abort', stop_reason: null, token_ids: [] };
    await using stage = await staged('token', (path) =>
      path === GENERATE
        ? { body: { request_id: 'r', created: 1, choices: [{ ...choice, logprobs: { content: [] } }] } }
        : undefined,
    );
    const answer = await secondTurn(stage.proxy, 's', false);
    expect(answer.status).to.equal(503);
    expect(answer.headers.get('retry-after')).to.not.equal(null);
    expect(stage.front.at(DERENDER)).to.deep.equal([]);
    const records = await stage.proxy.records('s');
    expect(records[1]).to.include({ finishReason: 'abort', mode: 'token' });
    expect(records[1]!.sampledIds).to.have.length(0);
    expect(lawsBroken(records)).to.deep.equal([]);
  });
});
