import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { chat, chatStream, joined, post, startTestEngine, type TestEngine, user } from './testing.ts';

const SCRIPT = 'variants: [{ name: x, steps: [{ text: One two three four five six seven eight. }] }]';
const BODY = { messages: [user('Go.')] };
const IDS = { return_token_ids: true, return_prompt_token_ids: true, logprobs: true };

describe('the switches of the scripted engine', function () {
  this.timeout(30_000);
  const start = (switches: TestEngine['switches'], more: Partial<TestEngine> = {}) =>
    startTestEngine({ script: SCRIPT, ...(switches === undefined ? {} : { switches }), ...more });
  const timed = async (work: Promise<unknown>): Promise<number> => {
    const begun = performance.now();
    await work;
    return performance.now() - begun;
  };

  it('token_ms and first_token_ms', async () => {
    await using engine = await start({ token_ms: 50 });
    const { usage } = await chat(engine.url, BODY);
    expect(await timed(chat(engine.url, BODY))).to.be.at.least(usage.completion_tokens * 49);
    expect(await timed(chat(engine.url, BODY, 'token_ms=0'))).to.be.below(usage.completion_tokens * 49);
    expect(await timed(chat(engine.url, BODY, 'token_ms=0, first_token_ms=200'))).to.be.at.least(199);
  });

  it('error_every and error_status', async () => {
    await using engine = await start({ error_every: 3 });
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push((await post(engine.url, BODY)).status);
    expect(statuses).to.deep.equal([200, 200, 500, 200, 200, 500]);
    const limited = await post(engine.url, BODY, 'error_every=1, error_status=429');
    expect([limited.status, limited.headers.get('retry-after')]).to.deep.equal([429, '1']);
    const overflow = await post(engine.url, BODY, 'error_every=1, error_status=400');
    expect(await overflow.text()).to.contain('context length');
  });

  it('fault_tries', async () => {
    await using engine = await start({ error_every: 1, fault_tries: 2 });
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await post(engine.url, BODY)).status);
    expect(statuses).to.deep.equal([500, 500, 200, 200]);
    expect((await post(engine.url, { ...BODY, seed: 1 })).status, 'another request').to.equal(500);
  });

  it('cut_after_tokens and cut_every', async () => {
    await using engine = await start({ cut_after_tokens: 3, cut_every: 2 });
    expect((await chat(engine.url, BODY)).choices[0].finish_reason).to.equal('stop');
    const cut = await post(engine.url, { ...BODY, stream: true });
    const { text, failure } = await readAll(cut);
    expect(failure, 'the socket is destroyed').to.not.equal(undefined);
    expect(text).to.contain('One').and.not.contain('four').and.not.contain('[DONE]');
    await chat(engine.url, BODY);
    const lost = await post(engine.url, BODY).then(
      () => 'answered',
      () => 'cut',
    );
    expect(lost, 'a whole reply is cut too').to.equal('cut');
  });

  it('cut_clean', async () => {
    await using engine = await start({ cut_after_tokens: 3, cut_clean: true });
    const { text, failure } = await readAll(await post(engine.url, { ...BODY, stream: true }));
    expect(failure).to.equal(undefined);
    expect(text)
      .to.contain('three')
      .and.not.contain('four')
      .and.not.contain('[DONE]')
      .and.not.contain('"stop"');
  });

  it('cut_error', async () => {
    for (const dialect of ['sglang', 'vllm'] as const) {
      await using engine = await start({ cut_after_tokens: 3, cut_error: true }, { dialect });
      const { text, failure } = await readAll(await post(engine.url, { ...BODY, stream: true }));
      expect(failure).to.equal(undefined);
      expect(text)
        .to.match(/three.*"error":\{/s)
        .and.not.contain('four');
    }
  });

  it('cut_before_head', async () => {
    await using engine = await start({ cut_before_head: true, fault_tries: 1 });
    const answer = () => post(engine.url, { ...BODY, stream: true }).then(({ status }) => status, String);
    expect(await answer()).to.contain('fetch failed');
    expect(await answer()).to.equal(200);
  });

  it('stall_ms and stall_after_tokens', async () => {
    await using engine = await start({ stall_ms: 1_000, fault_tries: 1 });
    const heads: number[] = [];
    for (let i = 0; i < 2; i++) heads.push(await timed(post(engine.url, { ...BODY, stream: true })));
    expect(heads[0]).to.be.at.least(990);
    expect(heads[1]).to.be.below(990);
    const later = await post(engine.url, { ...BODY, stream: true, seed: 1 }, 'stall_after_tokens=3');
    const reader = later.body?.getReader();
    let text = '';
    while (!text.includes('three')) text += Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(text).to.not.contain('four');
    expect(await timed(reader?.read() ?? Promise.resolve())).to.be.at.least(500);
    await reader?.cancel();
  });

  it('prompt_tokens_told', async () => {
    await using engine = await start({ prompt_tokens_told: 31_000 });
    const { usage } = await chat(engine.url, BODY);
    expect(usage.prompt_tokens).to.equal(31_000);
    expect(usage).to.have.property('total_tokens', 31_000 + usage.completion_tokens);
  });

  it('token_ids', async () => {
    for (const dialect of ['sglang', 'vllm'] as const) {
      await using engine = await start({ token_ids: false }, { dialect });
      const reply = await chat(engine.url, { ...BODY, ...IDS });
      expect(reply.choices[0].logprobs?.content).to.not.have.length(0);
      const ask = { logprobs: true, return_output_ids_in_sglext: true, return_input_ids_in_sglext: true };
      const events = await chatStream(engine.url, { ...BODY, ...ask, ...(dialect === 'vllm' ? IDS : {}) });
      expect(JSON.stringify([reply, events])).to.not.match(/(token_ids|input_ids|output_ids)":\[/);
    }
  });

  it('logprobs', async () => {
    for (const dialect of ['sglang', 'vllm'] as const) {
      await using engine = await start({ logprobs: false }, { dialect });
      expect((await chat(engine.url, { ...BODY, ...IDS })).choices[0].logprobs).to.equal(null);
      expect(joined(await chatStream(engine.url, { ...BODY, logprobs: true })).logprobs).to.deep.equal([]);
    }
  });

  it('retokenise_history and thinking_history, of one script', async () => {
    const script = `
switches: { retokenise_history: true, thinking_history: stripped }
variants: [{ name: x, steps: [{ think: Hm., text: I calculate something. }, { text: Done. }] }]`;
    await using engine = await startTestEngine({ script });
    const first = (await chat(engine.url, { ...BODY, ...IDS })).choices[0];
    const messages = [...BODY.messages, first.message, user('And?')];
    const drifted = (await chat(engine.url, { messages, ...IDS })).choices[0].prompt_token_ids;
    const plain = (await chat(engine.url, { messages, ...IDS }, 'retokenise_history=false')).choices[0]
      .prompt_token_ids;
    expect(drifted.length).to.be.above(plain.length);
  });

  it('keep_content_newline makes the next prompt drift', async () => {
    const script = 'variants: [{ name: x, steps: [{ text: So., calls: [{ tool: t }] }, { text: Done. }] }]';
    await using engine = await startTestEngine({ script, switches: { keep_content_newline: true } });
    const tools = [{ type: 'function', function: { name: 't' } }];
    const goesOn = async (switches?: string): Promise<boolean> => {
      const [choice] = (await chat(engine.url, { ...BODY, tools, ...IDS }, switches)).choices;
      const messages = [...BODY.messages, choice.message, { role: 'tool', content: 'x' }];
      const next = (await chat(engine.url, { messages, tools, ...IDS }, switches)).choices[0]
        .prompt_token_ids;
      const before: number[] = [...choice.prompt_token_ids, ...choice.response_token_ids];
      return before.every((id, i) => next[i] === id);
    };
    expect(await goesOn()).to.equal(false);
    expect(await goesOn('keep_content_newline=false')).to.equal(true);
  });

  it('system_first', async () => {
    const late = { messages: [...BODY.messages, { role: 'system', content: 'Be brief.' }] };
    await using engine = await start({ system_first: true });
    expect((await post(engine.url, BODY)).status).to.equal(200);
    const refused = await post(engine.url, late);
    expect(refused.status).to.equal(400);
    expect(await refused.text()).to.contain('System message must be at the beginning.');
  });

  it('context_tokens', async () => {
    await using engine = await start({ context_tokens: 14 });
    expect((await chat(engine.url, BODY)).choices[0].finish_reason).to.equal('length');
    expect((await post(engine.url, { messages: [user('long '.repeat(50))] })).status).to.equal(400);
  });

  it('set by a step, for that step alone', async () => {
    const script = `
variants:
  - name: x
    steps: [{ text: a b c d e, switches: { error_every: 1, error_status: 503 } }, { text: Fine. }]`;
    await using engine = await startTestEngine({ script });
    expect((await post(engine.url, BODY)).status).to.equal(503);
    const later = { messages: [user('Go.'), { role: 'assistant', content: 'x' }, user('On.')] };
    expect((await post(engine.url, later)).status).to.equal(200);
  });
});

describe('a caller that leaves', function () {
  this.timeout(30_000);
  for (const stream of [true, false]) {
    it(`ends the generation, stream: ${stream}`, async () => {
      await using engine = await startTestEngine({ script: SCRIPT, switches: { token_ms: 100 } });
      const stats = () => statsOf(engine.url);
      const leave = new AbortController();
      const call = fetch(`${engine.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ ...BODY, stream }),
        signal: leave.signal,
      });
      const ended = call.then((response) => response.text()).catch(() => 'left');
      await delay(250);
      expect(await stats()).to.include({ running: 1 });
      leave.abort();
      expect(await ended).to.equal('left');
      await delay(50);
      expect(await stats()).to.include({ running: 0, aborted: 1 });
      const { tokens } = await stats();
      await delay(250);
      expect(await stats()).to.include({ tokens });
    });
  }
});

async function statsOf(url: string): Promise<{ tokens: number }> {
  return (await (await fetch(`${url}/stats`)).json()) as { tokens: number };
}

async function readAll(response: Response): Promise<{ text: string; failure: unknown }> {
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(part, { stream: true });
    }
    return { text, failure: undefined };
  } catch (failure) {
    return { text, failure };
  }
}
