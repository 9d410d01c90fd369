// Calls that come as token ids: what they answer is what the same chat would have been answered.
import { expect } from 'chai';
import { BASH, type Body, chat, type Reply, startTestEngine, user } from './testing.ts';

const SCRIPT = `
when: count
variants:
  - name: counts
    steps:
      - { think: Look first., text: 'I look: 你好.', calls: [{ shell: ls }, { shell: cat x }] }
      - { text: That is all. }
`;
const BODY = { messages: [user('count')], tools: [BASH], seed: 4, max_tokens: 200, logprobs: true };

async function ask(url: string, path: string, body: Body): Promise<Body> {
  const answer = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) });
  return { status: answer.status, ...((await answer.json()) as Body) };
}

/** Without what each call has of its own. */
function said({ choices, usage }: Reply): unknown {
  const [{ message, logprobs, finish_reason }] = choices;
  const calls = message.tool_calls?.map((call) => call.function) ?? [];
  const told = logprobs?.content.map(({ logprob }) => logprob);
  return { content: message.content, calls, told, finish_reason, sampled: usage.completion_tokens };
}

describe('the scripted engine and token ids', function () {
  this.timeout(30_000);

  it('vllm: renders, generates and derenders to what the chat is', async () => {
    await using engine = await startTestEngine({ dialect: 'vllm', script: SCRIPT });
    const whole = await chat(engine.url, { ...BODY, return_token_ids: true });
    const { token_ids, sampling_params } = await ask(engine.url, '/v1/chat/completions/render', BODY);
    expect(token_ids).to.deep.equal(whole.prompt_token_ids);
    const generated = await ask(engine.url, '/inference/v1/generate', { token_ids, sampling_params });
    const [choice] = generated['choices'] as [Body];
    expect(choice).to.deep.include({ token_ids: whole.choices[0].token_ids, finish_reason: 'stop' });
    const derender = (token_ids: unknown): Promise<Body> =>
      ask(engine.url, '/v1/chat/completions/derender', {
        generate_response: { ...generated, choices: [{ ...choice, token_ids }] },
        chat_request: BODY,
      });
    const ids = choice['token_ids'] as number[];
    const { sampled, ...expected } = said(whole) as Body;
    const derendered = said((await derender(ids.slice(0, -1))) as unknown as Reply);
    // What a chat makes of finish_reason, derendering does not.
    expect(derendered).to.deep.equal({ ...expected, finish_reason: 'stop', sampled: Number(sampled) - 1 });
    const bare = (await derender(ids)) as unknown as Reply;
    expect(bare.choices[0].message.content).to.match(/<\|im_end\|>$/);
    expect(bare.choices[0].message.tool_calls?.[0]?.id).to.match(/^[0-9a-f]{16}$/);
    expect(await derender([])).to.include({ status: 400 });
  });

  it('llamacpp: completes the ids of a prompt with text', async () => {
    await using engine = await startTestEngine({ dialect: 'llamacpp', script: SCRIPT });
    const whole = (await ask(engine.url, '/v1/chat/completions', { ...BODY, verbose: true })) as Body & {
      __verbose: { prompt: string; tokens: number[]; tokens_evaluated: number };
    };
    const { prompt } = await ask(engine.url, '/apply-template', BODY);
    expect(prompt).to.equal(whole.__verbose.prompt);
    const { tokens } = (await ask(engine.url, '/tokenize', { content: prompt })) as { tokens: number[] };
    expect(tokens).to.have.length(whole.__verbose.tokens_evaluated);
    const completed = await ask(engine.url, '/completion', { prompt: tokens, n_predict: 200, seed: 4 });
    expect(completed).to.include({ stop_type: 'eos', tokens_evaluated: tokens.length });
    expect(completed['tokens']).to.deep.equal(whole.__verbose.tokens);
    expect(completed['content']).to.match(/^<think>\nLook first\.\n<\/think>\n\nI look: 你好\.\n<tool_call>/);
    const cut = await ask(engine.url, '/completion', { prompt: tokens, n_predict: 3, seed: 4 });
    expect(cut).to.include({ stop_type: 'limit', tokens_predicted: 3 });
    const stopped = await ask(engine.url, '/completion', { prompt: tokens, seed: 4, stop: [' look'] });
    expect(stopped['stop_type']).to.equal('word');
    expect(stopped['content']).to.match(/I$/);
  });

  it('answers nothing of another engine', async () => {
    await using engine = await startTestEngine({ dialect: 'sglang', script: SCRIPT });
    for (const path of [
      '/inference/v1/generate',
      '/completion',
      '/apply-template',
      '/v1/chat/completions/render',
    ]) {
      expect(await ask(engine.url, path, BODY)).to.include({ status: 404 });
    }
  });

  it('samples other tokens than encoding gives, where it is told to', async () => {
    await using engine = await startTestEngine({ script: SCRIPT, switches: { split_samples: true } });
    const asked = { ...BODY, return_token_ids: true };
    const ids = (await chat(engine.url, asked)).choices[0].response_token_ids;
    const canonical = (await chat(engine.url, asked, 'split_samples=false')).choices[0].response_token_ids;
    expect(ids.length).to.be.above(canonical.length);
    const [text, same] = await Promise.all(
      [ids, canonical].map((tokens) => ask(engine.url, '/detokenize', { tokens })),
    );
    expect(text).to.deep.equal(same);
  });
});
