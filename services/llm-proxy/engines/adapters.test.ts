// Samples of real engines (vLLM 0.32, SGLang 0.5.23), shortened.
import { expect } from 'chai';
import type { JsonObject } from '../domain/json.ts';
import { expertFields } from '../domain/routed-experts.ts';
import { noTokens, sampledOf, type Tokens } from '../domain/tokens.ts';
import type { EngineAdapter } from './adapter.ts';
import { sglang } from './sglang.ts';
import { vllm } from './vllm.ts';

const content = (...logprobs: number[]): JsonObject => ({
  content: logprobs.map((logprob) => ({ token: 't', logprob, bytes: [84], top_logprobs: [] })),
});

function read(adapter: EngineAdapter, chunks: JsonObject[]): Tokens {
  const tokens = noTokens();
  for (const chunk of chunks) adapter.readChunk(chunk, tokens);
  return tokens;
}

const idsIn = (tokens: Tokens): number[] | undefined => {
  const { ids } = sampledOf(tokens, 0);
  return ids && [...ids];
};

const plain = (tokens: Tokens): object => ({
  promptIds: tokens.promptIds && [...tokens.promptIds],
  sampledIds: idsIn(tokens),
  logprobs: sampledOf(tokens, 0).logprobs,
  weightVersion: tokens.weightVersion,
});

describe('vllm adapter', () => {
  it('reads a whole reply', () => {
    const tokens = noTokens();
    const choice = {
      index: 0,
      logprobs: content(-7.36, -1),
      finish_reason: 'length',
      token_ids: [1069, 654],
    };
    vllm.readReply({ choices: [choice], prompt_token_ids: [1, 1577, 201], prompt_logprobs: null }, tokens);
    expect(plain(tokens)).to.deep.equal({
      promptIds: [1, 1577, 201],
      sampledIds: [1069, 654],
      logprobs: [-7.36, -1],
      weightVersion: '',
    });
  });

  it('reads the routed experts of a whole reply, as far as they are numbers, and takes them out', () => {
    const readOf = (told: string, expertsFrom: number | undefined = 0): unknown => {
      const tokens = { ...noTokens(), expertsFrom };
      const reply = { choices: [{ index: 0, token_ids: [1069, 654], routed_experts: told }] };
      vllm.readReply(reply, tokens);
      expect(reply.choices[0]).to.not.have.property('routed_experts');
      return sampledOf(tokens, 0).experts;
    };
    // As vLLM 0.32.0's numpy2base64 writes uint8 [[[0, 7]]], but for the blanks behind the head.
    const head = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 2), }\n";
    const file = Buffer.from(`\x93NUMPY\x01\0${String.fromCharCode(head.length)}\0${head}\0\x07`, 'latin1');
    const told = file.toString('base64');
    expect(readOf(told)).to.deep.equal({ shape: [1, 1, 2], values: Uint8Array.of(0, 7) });
    expect(readOf('bm8=')).to.deep.equal({ shape: [], values: new Uint8Array() });
    // Nobody asked.
    const silent = { ...noTokens() };
    vllm.readReply({ choices: [{ index: 0, routed_experts: told }] }, silent);
    expect(sampledOf(silent, 0)).to.not.have.property('experts');
  });

  it('reads a stream, whose finish chunk has ids beside an empty delta', () => {
    const delta = (more: JsonObject): JsonObject => ({
      choices: [{ index: 0, finish_reason: null, ...more }],
    });
    const tokens = read(vllm, [
      {
        ...delta({ delta: { role: 'assistant', content: '' }, logprobs: null }),
        prompt_token_ids: [1, 1577],
      },
      delta({ delta: { content: 'TE' }, logprobs: content(-1), token_ids: [1069] }),
      delta({ delta: {}, logprobs: content(-2), finish_reason: 'length', token_ids: [128] }),
      { choices: [], usage: { completion_tokens: 2 } },
    ]);
    expect(plain(tokens)).to.deep.include({
      promptIds: [1, 1577],
      sampledIds: [1069, 128],
      logprobs: [-1, -2],
    });
  });

  it('tells ids that are not there from none', () => {
    const tokens = noTokens();
    vllm.readReply({ choices: [{ message: {}, logprobs: null }] }, tokens);
    expect(plain(tokens)).to.include({ promptIds: undefined, sampledIds: undefined });
    vllm.readReply({ choices: [{ token_ids: [] }], prompt_token_ids: [4] }, tokens);
    expect(idsIn(tokens)).to.deep.equal([]);
  });
});

describe('sglang adapter', () => {
  it('takes routed experts that are no whole numbers for no rows that fit', () => {
    const readOf = (bytes: number): unknown => {
      const tokens = noTokens();
      const told = Buffer.alloc(bytes).toString('base64');
      sglang.readReply({ choices: [{ index: 0, meta_info: { routed_experts: told } }] }, tokens);
      const shape = { layers: 1, topK: 2, experts: 8 };
      return expertFields({ shape, from: 0, rows: sampledOf(tokens, 0).experts }, 0, 2).routedExpertsFault;
    };
    expect(readOf(8)).to.equal('');
    for (const bytes of [7, 9, 10, 11, 12]) expect(readOf(bytes)).to.equal('wrong_length');
  });

  const choice = {
    index: 0,
    logprobs: content(-7.761),
    prompt_token_ids: [1, 2],
    response_token_ids: [1600, 1318],
    meta_info: {
      weight_version: '9',
      output_token_logprobs: [
        [-7.761, 1600, null],
        [-7.696, 1318, null],
      ],
    },
  };

  it('reads a whole reply, with the pairs of meta_info where logprobs were cut short', () => {
    const tokens = noTokens();
    sglang.readReply(
      { choices: [choice], metadata: { weight_version: '9', weight_versions: [{ version: '8' }] } },
      tokens,
    );
    expect(plain(tokens)).to.deep.equal({
      promptIds: [1, 2],
      sampledIds: [1600, 1318],
      logprobs: [-7.761, -7.696],
      weightVersion: '8',
    });
  });

  it('keeps the choices of one call apart', () => {
    const tokens = noTokens();
    const other = { ...choice, index: 1, response_token_ids: [9], meta_info: {}, logprobs: content(-2) };
    sglang.readReply({ choices: [choice, other] }, tokens);
    sglang.readChunk({ choices: [], sglext: { input_ids: [1], output_ids: [[3], [4]] } }, tokens);
    expect(idsIn(tokens)).to.deep.equal([1600, 1318, 3]);
    expect(sampledOf(tokens, 1)).to.deep.equal({ ids: [9, 4], logprobs: [-2] });
  });

  it('tells the weights of each choice of one call', () => {
    const tokens = noTokens();
    const runs = [
      { version: '8', start: 0, end: 1 },
      { version: '9', start: 1, end: 2 },
    ];
    const told = [runs, [{ version: '9', start: 0, end: 2 }]];
    const choices = told.map((versions, index) => {
      return { ...choice, index, meta_info: { weight_version: '9', weight_versions: versions } };
    });
    // As SGLang has it: those of the first choice.
    sglang.readReply({ choices, metadata: { weight_version: '9', weight_versions: runs } }, tokens);
    const spans = runs.map(({ version, start, end }) => ({ weightVersion: version, start, end }));
    expect(sampledOf(tokens, 0).weights).to.deep.equal({ weightVersion: '8', spans });
    expect(sampledOf(tokens, 1).weights).to.deep.equal({ weightVersion: '9', spans: [] });
  });

  it('never lends a logprob to another id', () => {
    const tokens = noTokens();
    sglang.readReply({ choices: [{ ...choice, response_token_ids: [1600, 7] }] }, tokens);
    expect(sampledOf(tokens, 0).logprobs).to.deep.equal([-7.761]);
  });

  it('takes the ids of the pairs where there are no others', () => {
    const tokens = noTokens();
    const { response_token_ids: _, ...older } = choice;
    sglang.readReply({ choices: [older] }, tokens);
    expect(idsIn(tokens)).to.deep.equal([1600, 1318]);
  });

  it('reads a stream, whose last chunk has the ids', () => {
    const delta = (text: string): JsonObject => ({
      choices: [{ delta: { content: text }, logprobs: content(-1) }],
    });
    const last = { choices: [], sglext: { input_ids: [1, 2], output_ids: [[5, 6]] }, usage: {} };
    expect(plain(read(sglang, [delta('a'), delta('b'), last]))).to.deep.include({
      promptIds: [1, 2],
      sampledIds: [5, 6],
      logprobs: [-1, -1],
    });
    expect(read(sglang, [delta('a')]).promptIds).to.equal(undefined);
  });
});
