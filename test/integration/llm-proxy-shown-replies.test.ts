// What harnesses get to see of a reply beside its words, in text mode and token mode, whichever engine makes it.
import { expect } from 'chai';
import { BASH, startTestEngine } from '../../examples/scripted-engine/testing.ts';
import { unpackIds } from '../../services/common/columns.ts';
import { AgentSession } from '../support/agent-session.ts';
import { readEvents, TestProxy } from '../support/llm-proxy.ts';
import { RawEngine, sse } from '../support/raw-engine.ts';

const SCRIPT = `
when: count
variants:
  - name: counts
    steps:
      - { text: Let me look., calls: [{ shell: ls }] }
      - { text: 'Again, STOP here.', calls: [{ shell: ls }, { shell: cat x }] }
      - { text: That is all. }
`;

type Mode = 'text' | 'token';

async function staged(kind: 'vllm' | 'sglang' | 'llamacpp', mode: Mode) {
  const engine = await startTestEngine({ dialect: kind, script: SCRIPT });
  const proxy = await TestProxy.start({ engineUrl: engine.url, kind, inference: { mode } });
  return {
    proxy,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    },
  };
}

interface Entry {
  readonly token: string;
  readonly logprob: number;
  readonly top_logprobs: unknown[];
}
interface Shown {
  readonly id: string;
  readonly created: number;
  readonly choices: { readonly logprobs?: { readonly content?: Entry[] } | null }[];
}

async function shown(answer: Response, stream: boolean): Promise<Shown[]> {
  expect(answer.status).to.equal(200);
  const texts = stream ? (await readEvents(answer)).events.slice(0, -1) : [await answer.text()];
  return texts.map((text) => JSON.parse(text) as Shown);
}

/** Of a whole reply, or of all parts of one. */
const entriesIn = (replies: readonly Shown[]): Entry[] =>
  replies.flatMap(({ choices }) => choices.flatMap(({ logprobs }) => logprobs?.content ?? []));

for (const kind of ['vllm', 'sglang', 'llamacpp'] as const) {
  describe(`a reply of ${kind}`, () => {
    it('has an id of its own, by which harnesses tell it from others', async () => {
      await using stage = await staged(kind, 'token');
      const capability = await stage.proxy.admit('s');
      const options = { stream: false, tools: [BASH] };
      const agent = new AgentSession(stage.proxy, capability, 'count the files', options);
      const ids = new Set<string>();
      for (let turn = 0; turn < 3; turn++) {
        await agent.work(1);
        const body = { messages: agent.messages, tools: [BASH] };
        const [reply] = await shown(await stage.proxy.chat(capability, body), false);
        expect(reply?.created).to.be.above(1e9);
        ids.add(reply?.id ?? '');
      }
      expect(ids).to.have.property('size', 3);
    });

    for (const mode of ['text', 'token'] as const) {
      it(`shows its logprobs where they are asked for: ${mode} mode`, async () => {
        await using stage = await staged(kind, mode);
        for (const stream of [false, true]) {
          const capability = await stage.proxy.admit(`s-${stream}`);
          const options = { stream, tools: [BASH] };
          const agent = new AgentSession(stage.proxy, capability, 'count the files', options);
          await agent.work(1);
          const body = { messages: agent.messages, tools: [BASH], stream, logprobs: true, top_logprobs: 2 };
          const entries = entriesIn(await shown(await stage.proxy.chat(capability, body), stream));
          const [, record] = await stage.proxy.records(`s-${stream}`);
          expect(record?.mode).to.equal(mode);
          expect(entries).to.have.length(unpackIds(record!.sampledIds).length);
          expect(entries.slice(0, 2).map(({ token }) => token)).to.deep.equal(['Again', ',']);
          expect(entries[0]?.logprob).to.be.below(0);
          const alone = { ...body, top_logprobs: undefined };
          for (const { top_logprobs } of entriesIn(
            await shown(await stage.proxy.chat(capability, alone), stream),
          ))
            expect(top_logprobs).to.deep.equal([]);
        }
      });

      it(`tells the stop string that it met: ${mode} mode`, async () => {
        await using stage = await staged(kind, mode);
        for (const stream of [false, true]) {
          const capability = await stage.proxy.admit(`m-${stream}`);
          const first = (await (await message(stage.proxy, capability, [COUNT])).json()) as Message;
          const results = first.content.filter(({ type }) => type === 'tool_use');
          const turns = [
            COUNT,
            { role: 'assistant', content: first.content },
            { role: 'user', content: results.map(({ id }) => ({ ...RESULT, tool_use_id: id })) },
          ];
          const stopping = { stream, stop_sequences: ['x', 'STOP'] };
          const { stop_reason, stop_sequence } = await endOf(
            await message(stage.proxy, capability, turns, stopping),
            stream,
          );
          expect([stop_reason, stop_sequence]).to.deep.equal(['stop_sequence', 'STOP']);
          expect((await stage.proxy.records(`m-${stream}`))[1]?.mode).to.equal(mode);
        }
      });
    }
  });
}

interface End {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
}
interface Message extends End {
  readonly content: readonly { readonly type: string; readonly id?: string }[];
}

const COUNT = { role: 'user', content: 'count the files' };
const RESULT = { type: 'tool_result', content: 'a' };
const TOOLS = [{ name: 'bash', input_schema: BASH.function.parameters }];

/** By anthropic-messages, which tells stop strings. */
const message = (proxy: TestProxy, capability: string, messages: object[], more = {}): Promise<Response> =>
  fetch(`${proxy.url}/s/${capability}/v1/messages`, {
    method: 'POST',
    body: JSON.stringify({ model: 'policy', max_tokens: 200, tools: TOOLS, messages, ...more }),
  });

async function endOf(answer: Response, stream: boolean): Promise<End> {
  expect(answer.status).to.equal(200);
  if (!stream) return (await answer.json()) as End;
  const events = (await answer.text()).matchAll(/^data: (.*)$/gm);
  const told = [...events].map(([, data = '']) => JSON.parse(data) as { type: string; delta: End });
  return told.find(({ type }) => type === 'message_delta')!.delta;
}

describe('a reply of an engine of kind openai', () => {
  const entry = { token: 'a', logprob: -0.5, bytes: [97], top_logprobs: [{ token: 'a', logprob: -0.5 }] };
  const choice = { index: 0, logprobs: { content: [entry] } };

  it('shows its logprobs, which are asked for only then', async () => {
    await using engine = await RawEngine.start(({ body }) => {
      const logprobs = body.logprobs === true ? choice.logprobs : null;
      const said = { role: 'assistant', content: 'a' };
      if (body.stream !== true)
        return { body: { choices: [{ ...choice, logprobs, message: said, finish_reason: 'stop' }] } };
      const chunks = [
        { ...choice, logprobs, delta: said },
        { index: 0, delta: {}, finish_reason: 'stop' },
      ];
      const events = [...chunks.map((one) => ({ choices: [one] })), '[DONE]'];
      return { type: 'text/event-stream', body: sse(...events) };
    });
    await using proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'openai', modelServed: 'm' });
    const capability = await proxy.admit('s');
    const asked = { messages: [{ role: 'user', content: 'x' }] };
    for (const stream of [false, true]) {
      for (const more of [{ logprobs: true, top_logprobs: 3 }, { logprobs: true }, {}]) {
        const entries = entriesIn(
          await shown(await proxy.chat(capability, { ...asked, stream, ...more }), stream),
        );
        const seen = 'top_logprobs' in more ? entry : { ...entry, top_logprobs: [] };
        expect(entries).to.deep.equal('logprobs' in more ? [seen] : []);
        const { logprobs, top_logprobs } = engine.requests.at(-1)!.body;
        expect(JSON.parse(JSON.stringify({ logprobs, top_logprobs }))).to.deep.equal(more);
      }
    }
  });
});
