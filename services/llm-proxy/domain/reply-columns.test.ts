import { expect } from 'chai';
import { idsOf, isObject, type JsonObject, objectOf } from './json.ts';
import { logprobColumnOf, parseReply } from './reply-columns.ts';
import { addLogprobs, noTokens, sampledOf } from './tokens.ts';

const entry = (token: string, logprob: unknown): object => ({
  token,
  logprob,
  bytes: [1, 2],
  top_logprobs: [{ token: 'x', logprob: -5, bytes: null }],
});
const reply = (values: readonly unknown[], more: object = {}): JsonObject =>
  ({
    id: 'é "prompt_token_ids":[1] "logprobs":{"content":[',
    choices: [
      {
        index: 0,
        message: { content: '"token_ids":[7,8]' },
        logprobs: { content: values.map((value, i) => entry(`"a\\${i}]}`, value)) },
        token_ids: [1, 22, 333],
        finish_reason: 'stop',
      },
    ],
    prompt_token_ids: [0, 999_999_999],
    ...more,
  }) as unknown as JsonObject;
const parse = (text: string): JsonObject => objectOf(parseReply(Buffer.from(text)));
const choiceOf = (value: JsonObject): JsonObject => objectOf((value['choices'] as JsonObject[])[0]);
const logprobsOf = (value: JsonObject): number[] => {
  const sampled = sampledOf(noTokens(), 0);
  addLogprobs(sampled, choiceOf(value));
  return sampled.logprobs;
};

describe('columns of a reply', () => {
  it('are cut out, and the rest is what JSON.parse reads', () => {
    const whole = reply([-0.5, 0, -1e-7, -0.12345678901234567, -17.25, null]);
    const read = parse(JSON.stringify(whole));
    expect([...(idsOf(read['prompt_token_ids']) ?? [])]).to.deep.equal([0, 999_999_999]);
    expect([...(idsOf(choiceOf(read)['token_ids']) ?? [])]).to.deep.equal([1, 22, 333]);
    expect(logprobColumnOf(choiceOf(read)['logprobs'] as object)).to.not.equal(undefined);
    expect(logprobsOf(read)).to.deep.equal([-0.5, 0, -1e-7, -0.12345678901234567, -17.25, Number.NaN]);
    const shown = structuredClone(whole);
    delete shown['prompt_token_ids'];
    delete choiceOf(shown)['token_ids'];
    expect(JSON.parse(JSON.stringify(read))).to.deep.equal(shown);
  });

  it('can be taken out and replaced as others', () => {
    const read = parse(JSON.stringify(reply([-1])));
    delete read['prompt_token_ids'];
    expect('prompt_token_ids' in read).to.equal(false);
    objectOf(choiceOf(read)['logprobs'])['content'] = null;
    expect(JSON.stringify(choiceOf(read)['logprobs'])).to.equal('{"content":null}');
  });

  it('are holes where the engine writes what is no number', () => {
    const text = JSON.stringify(reply([-1, -2])).replace('"logprob":-2', '"logprob":NaN');
    expect(logprobsOf(parse(text))).to.deep.equal([-1, Number.NaN]);
  });

  it('are left where they are not such columns', () => {
    for (const ids of [[1.5], [-1], ['a'], [[1]], [1_000_000_000], [null]]) {
      expect(parse(JSON.stringify({ prompt_token_ids: ids }))).to.deep.equal({ prompt_token_ids: ids });
    }
    const elsewhere = { a: { token_ids: [1] }, choices: [{ b: { prompt_token_ids: [2] } }] };
    expect(parse(JSON.stringify(elsewhere))).to.deep.equal(elsewhere);
    const odd = { choices: [{ logprobs: { content: [{ token: 'a' }] } }, { logprobs: { content: [1, 2] } }] };
    expect(parse(JSON.stringify(odd))).to.deep.equal(odd);
    const spaced = JSON.stringify(reply([-1]), null, 1);
    expect(parse(spaced)).to.deep.equal(reply([-1]));
  });

  it('take numbers for what they are, and no place among the cuts', () => {
    const numbers = { choices: [{ token_ids: 0, logprobs: { content: 0 } }], prompt_token_ids: [5] };
    const read = parse(JSON.stringify(numbers));
    expect([...(idsOf(read['prompt_token_ids']) ?? [])]).to.deep.equal([5]);
    expect(choiceOf(read)['token_ids']).to.equal(0);
  });

  it('refuse what is no JSON, wherever it is cut', () => {
    const text = JSON.stringify(reply([-1, -2]));
    for (let i = 0; i < text.length; i++) {
      expect(parseReply(Buffer.from(text.slice(0, i))), text.slice(0, i)).to.equal(undefined);
    }
    expect(isObject(parseReply(Buffer.from(text)))).to.equal(true);
  });
});
