// Requests of the Responses API that name what was said instead of sending it: a response to go on from, items of replies.
import { expect } from 'chai';
import OpenAI from 'openai';
import type {
  FunctionTool,
  ResponseCreateParamsNonStreaming,
  ResponseInput,
} from 'openai/resources/responses/responses';
import { BASH, startTestEngine } from '../../examples/scripted-engine/testing.ts';
import { asPolarError } from '../../services/common/errors.ts';
import { INLINE_BYTES_MAX } from '../../services/common/limits.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { Attempt } from '../../services/llm-proxy/attempts/attempt.ts';
import { RecordLog } from '../../services/llm-proxy/attempts/record-log.ts';
import { StoredMessages } from '../../services/llm-proxy/attempts/stored-messages.ts';
import { KnownMessages } from '../../services/llm-proxy/domain/known-messages.ts';
import { extendsEarlier, lawsBroken } from '../support/agent-session.ts';
import { promptsOf, TestProxy } from '../support/llm-proxy.ts';
import { plainBehaviour, WireEngine } from '../support/wire-engine.ts';

const SCRIPT = `
when: count
variants:
  - name: counts
    steps:
      - { think: I need a look., text: Looking at the unbelievably fragmented listing., calls: [{ shell: ls -la }, { shell: pwd }] }
      - { text: And once more., calls: [{ shell: ls }] }
      - { text: There are many of them., think: That is all. }
`;
const { name, description, parameters } = BASH.function;
const TOOLS: FunctionTool[] = [
  { type: 'function', name, description: String(description), parameters: parameters ?? null, strict: false },
];
const FRAME = { model: 'policy', instructions: 'You are a careful agent.', tools: TOOLS };

type Output = OpenAI.Responses.Response & { store?: boolean };
type Body = Omit<ResponseCreateParamsNonStreaming, 'stream'>;
/** One call; `last` is the response before it. */
type Turn = (client: OpenAI, last: Output | undefined) => Promise<Output>;

const clientOf = ({ url }: TestProxy, capability: string): OpenAI =>
  new OpenAI({ baseURL: `${url}/s/${capability}/v1`, apiKey: 'unused', maxRetries: 0 });

const asked = async (client: OpenAI, body: Body, stream: boolean): Promise<Output> =>
  stream
    ? ((await client.responses.stream(body).finalResponse()) as Output)
    : await client.responses.create(body);

const outputsTo = ({ output }: Output): ResponseInput =>
  output.flatMap((item) =>
    item.type === 'function_call'
      ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: 'a line\nß 你好' }]
      : [],
  );

/** Goes on by the response. */
const byResponse =
  (stream: boolean): Turn =>
  (client, last) =>
    asked(
      client,
      last === undefined
        ? { ...FRAME, input: 'count the files' }
        : { ...FRAME, previous_response_id: last.id, input: outputsTo(last) },
      stream,
    );

/** Names the items, as the Vercel AI SDK does where `store` is left alone. */
function byItems(stream: boolean): Turn {
  const input: ResponseInput = [{ role: 'user', content: [{ type: 'input_text', text: 'count the files' }] }];
  return (client, last) => {
    for (const { id } of last?.output ?? []) input.push({ type: 'item_reference', id: id ?? '' });
    if (last !== undefined) input.push(...outputsTo(last));
    return asked(client, { ...FRAME, input: [...input] }, stream);
  };
}

const TURNS = { 'by the response': byResponse, 'by its items': byItems };

/** Nothing of the history is another one than what was served and sampled. */
async function expectNoDrift(proxy: TestProxy, session: string): Promise<void> {
  const records = await proxy.records(session);
  expect(records.map(({ drift }) => drift)).to.deep.equal(['', '', '']);
  expect(records.map(({ mode }) => mode)).to.deep.equal(['text', 'token', 'token']);
  expect(records.map(({ baseIndex }) => baseIndex)).to.deep.equal([-1, 0, 1]);
  for (const record of records.slice(1)) expect(extendsEarlier(records, record)).to.equal(true);
  expect(lawsBroken(records)).to.deep.equal([]);
}

const ENGINE = { script: SCRIPT, switches: { split_samples: true } };
const inference = { mode: 'token' };

for (const kind of ['vllm', 'sglang', 'llamacpp'] as const) {
  describe(`a conversation that is named, in token mode at ${kind}`, () => {
    let engine: Awaited<ReturnType<typeof startTestEngine>>;
    let proxy: TestProxy;
    before(async () => {
      engine = await startTestEngine({ dialect: kind, ...ENGINE });
      proxy = await TestProxy.start({ engineUrl: engine.url, kind, inference });
    });
    after(async () => {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    for (const [how, turnOf] of Object.entries(TURNS)) {
      for (const stream of [false, true]) {
        it(`goes on ${how}, ${stream ? 'streamed' : 'whole'}`, async () => {
          const session = `${how.replaceAll(' ', '-')}-${stream}`;
          const client = clientOf(proxy, await proxy.admit(session));
          const turn = turnOf(stream);
          const first = await turn(client, undefined);
          const second = await turn(client, first);
          const third = await turn(client, second);
          expect(third.output_text).to.contain('many of them');
          expect([first.store, third.previous_response_id ?? second.id]).to.deep.equal([true, second.id]);
          await expectNoDrift(proxy, session);
        });
      }
    }
  });
}

it('a conversation that is named goes on after kill -9 of the proxy, from the records alone', async () => {
  await using engine = await startTestEngine({ dialect: 'vllm', ...ENGINE });
  await using proxy = await TestProxy.prepare({ engineUrl: engine.url, kind: 'vllm', inference });
  await proxy.spawn();
  const sessions = await Promise.all(
    Object.values(TURNS).map(async (turnOf, i) => {
      const client = clientOf(proxy, await proxy.admit(`s${i}`));
      const turn = turnOf(i === 0);
      return { client, turn, last: await turn(client, await turn(client, undefined)) };
    }),
  );
  await proxy.kill('SIGKILL');
  await proxy.spawn();
  for (const [i, { client, turn, last }] of sessions.entries()) {
    const body = { ...FRAME, previous_response_id: last.id, input: outputsTo(last) };
    const counted = await client.responses.inputTokens.count(body);
    expect((await turn(client, last)).output_text).to.contain('many of them');
    await expectNoDrift(proxy, `s${i}`);
    const prompts = promptsOf(await proxy.records(`s${i}`));
    expect(counted.input_tokens).to.be.greaterThan(prompts[1]!.length);
  }
});

describe('what is named in a request', () => {
  let engine: WireEngine;
  let proxy: TestProxy;
  let client: OpenAI;
  let sessions = 0;
  before(async () => {
    engine = await WireEngine.start('vllm');
    proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm' });
  });
  beforeEach(async () => {
    engine.behaviour = plainBehaviour();
    client = clientOf(proxy, await proxy.admit(`named-${++sessions}`));
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const last = () => engine.bodies.at(-1)?.messages;

  const refusal = async (work: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> => {
    const error = await work.then(
      () => undefined,
      (failure: unknown) => failure,
    );
    expect(error).to.be.instanceOf(OpenAI.APIError);
    return error as InstanceType<typeof OpenAI.APIError>;
  };

  it('is asked of the engine as if it had been sent, without instructions of before', async () => {
    const toolCalls = [{ id: 'c1', name, arguments: '{ "command":  "ls"}' }];
    engine.behaviour.reply = () => ({ content: 'so', reasoning: 'why', toolCalls });
    const first = await client.responses.create({ ...FRAME, input: 'x' });
    engine.behaviour.reply = () => ({ content: 'done' });
    const output = { type: 'function_call_output' as const, call_id: 'c1', output: 'one' };
    const second = await client.responses.create({
      model: 'm',
      previous_response_id: first.id,
      input: [output],
    });
    const said = {
      role: 'assistant',
      content: 'so',
      reasoning_content: 'why',
      tool_calls: [{ id: 'c1', type: 'function', function: { name, arguments: '{ "command":  "ls"}' } }],
    };
    const before = [
      { role: 'user', content: 'x' },
      said,
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
    ];
    expect(last()).to.deep.equal(before);
    await client.responses.create({
      model: 'm',
      instructions: 'Be brief.',
      previous_response_id: second.id,
      input: 'y',
    });
    expect(last()).to.deep.equal([
      { role: 'system', content: 'Be brief.' },
      ...before,
      { role: 'assistant', content: 'done' },
      { role: 'user', content: 'y' },
    ]);
    // From one response several may go on.
    await client.responses.create({ model: 'm', previous_response_id: first.id, input: [output] });
    expect(last()).to.deep.equal(before);
  });

  it('goes on in bodies of the Vercel AI SDK, where text is named and calls are sent', async () => {
    const toolCalls = [{ id: 'c1', name, arguments: '{ "command":  "ls"}' }];
    engine.behaviour.reply = () => ({ content: 'so', reasoning: 'why', toolCalls });
    const input: ResponseInput = [{ role: 'user', content: [{ type: 'input_text', text: 'x' }] }];
    const { output } = await client.responses.create({ model: 'm', input, tools: TOOLS });
    const [thought, text, call] = output.map(({ id }) => id ?? '');
    input.push(
      { type: 'item_reference', id: thought as string },
      { type: 'item_reference', id: text as string },
      // It has parsed the arguments.
      { type: 'function_call', call_id: 'c1', name, arguments: '{"command":"ls"}', id: call as string },
      { type: 'function_call_output', call_id: 'c1', output: 'one' },
    );
    await client.responses.create({ model: 'm', input, tools: TOOLS });
    const [first, second] = await proxy.records(`named-${sessions}`);
    expect(last()?.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'tool']);
    expect(second).to.include({ baseIndex: 0, drift: '', baseMessageCount: 2 });
    expect(second?.messageDigests).to.have.length(1);
    expect(first?.replyDigest).to.not.equal('');
  });

  it('is found after a restart, also where a record did not fit into one message', async () => {
    const long = 'x'.repeat(INLINE_BYTES_MAX);
    const { id } = await client.responses.create({ model: 'm', input: long });
    await proxy.stopHere();
    await proxy.startHere();
    await client.responses.create({ model: 'm', previous_response_id: id, input: 'y' });
    expect(last()?.[0]?.content).to.equal(long);
    expect(last()?.slice(1)).to.deep.equal([
      { role: 'assistant', content: 'hello' },
      { role: 'user', content: 'y' },
    ]);
  });

  it('is read from the records again where there was no room to keep it', async () => {
    const first = await client.responses.create({ model: 'm', input: 'x' });
    const { id } = await client.responses.create({ model: 'm', previous_response_id: first.id, input: 'y' });
    const key = { sessionId: `named-${sessions}`, attempt: 1 };
    const log = new RecordLog(proxy.bus, createBlobStore(proxy.bus), new AbortController().signal);
    const attempt = new Attempt(key, log, await log.load(key));
    const known = new KnownMessages(100);
    const stored = new StoredMessages(log, known);
    const callId = id.replace('resp_', 'call-');
    for (let n = 0; n < 2; n++) {
      const { previous, replies } = await stored.find(attempt, { previous: callId, replies: [callId] });
      expect(previous?.map(({ content }) => content)).to.deep.equal(['x', 'hello', 'y', 'hello']);
      expect(replies.get(callId)).to.include({ content: 'hello' });
      expect(known.sizeBytes).to.equal(0);
    }
    await attempt.close();
    const late = await stored.find(attempt, { previous: callId, replies: [] }).catch(asPolarError);
    expect(late).to.include({ reason: 'SESSION_CLOSED' });
  });

  it('is of this attempt alone', async () => {
    const { id, output } = await client.responses.create({ model: 'm', input: 'x' });
    const item = { type: 'item_reference' as const, id: (output[0] as { id: string }).id };
    for (const [session, attempt] of [
      ['named-other', 1],
      [`named-${sessions}`, 2],
    ] as const) {
      const other = clientOf(proxy, await proxy.admit(session, attempt));
      const unknown = await refusal(
        other.responses.create({ model: 'm', previous_response_id: id, input: 'y' }),
      );
      expect(unknown).to.include({
        status: 400,
        code: 'previous_response_not_found',
        param: 'previous_response_id',
      });
      const missing = await refusal(other.responses.create({ model: 'm', input: [item] }));
      expect(missing).to.include({ status: 400, param: 'input[0].id' });
    }
    await client.responses.create({ model: 'm', input: [item, { role: 'user', content: 'y' }] });
  });

  it('is not what was not to be stored, not what broke, not what nobody has said', async () => {
    const { id, store } = await asked(client, { model: 'm', input: 'x', store: false }, false);
    expect(store).to.equal(false);
    engine.behaviour.reply = () => ({ content: 'half of what was to be said' });
    engine.behaviour.cutAfter = 3;
    engine.behaviour.delayMs = 20;
    const streamed = await client.responses
      .create({ model: 'm', input: 'x', stream: true })
      .asResponse()
      .then((answer) => answer.text());
    const broken = /"response.failed".*?"id":"(resp_[^"]+)"/.exec(streamed)?.[1] ?? '';
    expect(broken).to.match(/^resp_/);
    engine.behaviour = plainBehaviour();
    for (const gone of [id, broken, 'resp_1', 'odd']) {
      const error = await refusal(
        client.responses.create({ model: 'm', previous_response_id: gone, input: 'y' }),
      );
      expect(error.code, gone).to.equal('previous_response_not_found');
    }
    const error = await refusal(client.responses.create({ model: 'm', conversation: 'conv_1', input: 'y' }));
    expect(error.param).to.equal('conversation');
  });
});
