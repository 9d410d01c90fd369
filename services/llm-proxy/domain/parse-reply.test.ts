import { expect } from 'chai';
import { heldBytes } from '../../../test/support/held-bytes.ts';
import { idsOf, isObject, type JsonObject, objectOf } from './json.ts';
import { parseReply } from './parse-reply.ts';
import { unreadLogprobs } from './reply-logprobs.ts';
import { addLogprobs, noTokens, sampledOf } from './tokens.ts';

/** Far more than all else. */
const PADDING = 4 * 1024 * 1024;

const entry = (token: string, logprob: unknown): object => ({
  token,
  logprob,
  bytes: [1, 2],
  top_logprobs: [],
});
const choice = (values: readonly unknown[]): object => ({
  message: { content: '"logprobs":{"content":[{"logprob":-9}]}' },
  logprobs: { content: values.map((value, i) => entry(`"a\\${i}]}`, value)), refusal: null },
});
const reply = (...values: (readonly unknown[])[]): JsonObject =>
  ({ id: 'é', choices: values.map(choice), usage: {} }) as unknown as JsonObject;
const parse = (text: string, keep = true): JsonObject => objectOf(parseReply(Buffer.from(text), keep));
const choicesOf = (value: JsonObject): JsonObject[] => value['choices'] as JsonObject[];
const logprobsOf = (value: JsonObject, index = 0): number[] => {
  const sampled = sampledOf(noTokens(), 0);
  addLogprobs(sampled, choicesOf(value)[index] as JsonObject);
  return [...sampled.logprobs];
};

describe('logprobs of a reply', () => {
  it('are read ahead of their entries, which are there when they are looked at', () => {
    const whole = reply([-0.5, 0, -1e-7, -17.25, null, 3], [-2]);
    const read = parse(JSON.stringify(whole));
    expect(unreadLogprobs(objectOf(choicesOf(read)[0]?.['logprobs']))).to.have.length(6);
    expect(logprobsOf(read)).to.deep.equal([-0.5, 0, Math.fround(-1e-7), -17.25, NaN, NaN]);
    expect(logprobsOf(read, 1)).to.deep.equal([-2]);
    expect(JSON.parse(JSON.stringify(read))).to.deep.equal(whole);
    expect(read).to.deep.equal(whole);
  });

  it('are numbers alone where nobody looks at the entries', () => {
    const read = parse(JSON.stringify(reply([-0.5, null], [-2])), false);
    expect([logprobsOf(read), logprobsOf(read, 1)]).to.deep.equal([[-0.5, NaN], [-2]]);
    expect(JSON.stringify(choicesOf(read)[0]?.['logprobs'])).to.equal('{"refusal":null}');
  });

  it('are the very float32s that an engine writes, in all their digits', () => {
    const values = Float32Array.from(
      { length: 2_000 },
      (_, i) => -(((i + 1) * 7919) % 10_007) / 997 ** (1 + (i % 5)),
    );
    const read = parse(JSON.stringify(reply([...values])));
    expect(Float32Array.from(logprobsOf(read))).to.deep.equal(values);
  });

  it('are holes where the engine writes what is no number', () => {
    const text = JSON.stringify(reply([-1, -2])).replace('"logprob":-2', '"logprob":NaN');
    const read = parse(text);
    expect(logprobsOf(read)).to.deep.equal([-1, NaN]);
    const { content } = objectOf(choicesOf(read)[0]?.['logprobs']);
    expect((content as JsonObject[])[1]?.['logprob']).to.equal(null);
  });

  it('are read however engines order the members of an entry', () => {
    const orders = [
      { token: '"]}', logprob: -1.5, top_logprobs: [] },
      { token: '\\\\"', bytes: null, logprob: -1.5, top_logprobs: [] },
      { id: 7, token: 'é\n', bytes: [], logprob: -1.5, top_logprobs: [] },
    ];
    for (const one of orders) {
      const value = { choices: [{ logprobs: { content: [one, one] } }] };
      const read = parse(JSON.stringify(value));
      expect(unreadLogprobs(objectOf(choicesOf(read)[0]?.['logprobs']))).to.deep.equal(
        Float32Array.of(-1.5, -1.5),
      );
      expect(read).to.deep.equal(value);
    }
  });

  it('are parsed where others were asked for too', () => {
    const top = [{ token: 'x', logprob: -5, bytes: null }];
    const value = { choices: [{ logprobs: { content: [{ ...entry('a', -1), top_logprobs: top }] } }] };
    const read = parse(JSON.stringify(value));
    expect(logprobsOf(read)).to.deep.equal([-1]);
    expect(read).to.deep.equal(value);
  });

  it('keep nothing of the reply beside them', () => {
    const text = Buffer.from(JSON.stringify({ ...reply([-1, -2]), padding: 'x'.repeat(PADDING) }));
    const before = heldBytes();
    const kept = Array.from({ length: 16 }, () => choicesOf(objectOf(parseReply(text, true)))[0]);
    expect(heldBytes() - before).to.be.below(PADDING);
    expect(kept).to.have.length(16);
  });

  it('can be taken away', () => {
    const read = parse(JSON.stringify(reply([-1])));
    objectOf(choicesOf(read)[0]?.['logprobs'])['content'] = null;
    expect(JSON.stringify(choicesOf(read)[0]?.['logprobs'])).to.equal('{"content":null,"refusal":null}');
  });

  it('are left where they are not such entries', () => {
    const odd = [
      { choices: [{ logprobs: { content: [{ token: 'a' }] } }, { logprobs: { content: [1, 2] } }] },
      { a: { logprobs: { content: [{ logprob: -1 }] } }, choices: [{ logprobs: { content: 0 } }] },
      { choices: { logprobs: { content: [{ logprob: -1 }] } } },
    ];
    for (const value of odd) expect(parse(JSON.stringify(value))).to.deep.equal(value);
    expect(parse(JSON.stringify(reply([-1]), null, 1))).to.deep.equal(reply([-1]));
  });

  it('are no reason to take for JSON what is none', () => {
    const text = JSON.stringify(reply([-1, -2]));
    for (let i = 0; i < text.length; i++) {
      for (const keep of [true, false])
        expect(parseReply(Buffer.from(text.slice(0, i)), keep), text.slice(0, i)).to.equal(undefined);
    }
    expect(isObject(parseReply(Buffer.from(text), true))).to.equal(true);
  });
});

describe('ids of a reply', () => {
  const told = (ids: unknown, more: object = {}): JsonObject =>
    ({
      prompt_token_ids: ids,
      choices: [{ index: 0, token_ids: ids, response_token_ids: ids }],
      ...more,
    }) as never;
  const read = (value: JsonObject): unknown[] => {
    const reply = parse(JSON.stringify(value));
    const [choice] = choicesOf(reply);
    return [reply['prompt_token_ids'], choice?.['token_ids'], choice?.['response_token_ids']].map(idsOf);
  };

  it('are columns, wherever engines tell them', () => {
    const ids = Array.from({ length: 10_000 }, (_, i) => (i * 7919) % 151_936);
    expect(read(told(ids))).to.deep.equal([1, 2, 3].map(() => Int32Array.from(ids)));
    expect(read(told([2 ** 31 - 1, 0]))[0]).to.deep.equal(Int32Array.of(2 ** 31 - 1, 0));
    const both = { ...reply([-1, -2], [-3]), ...told([7, 8], { choices: reply([-1, -2], [-3])['choices'] }) };
    const value = parse(JSON.stringify(both));
    expect(logprobsOf(value)).to.deep.equal([-1, -2]);
    expect(logprobsOf(value, 1)).to.deep.equal([-3]);
    expect(idsOf(value['prompt_token_ids'])).to.deep.equal(Int32Array.of(7, 8));
  });

  it('are what JSON says they are where they are none', () => {
    for (const ids of [[], [-1], [1.5], [2 ** 31], ['1'], [[1]], null, 'x', [1e3, 1], { a: [1] }]) {
      const expected = idsOf(ids);
      expect(read(told(ids)), JSON.stringify(ids)).to.deep.equal([expected, expected, expected]);
    }
    const text = JSON.stringify(told(['x'])).replaceAll('["x"]', '[01]');
    expect(parseReply(Buffer.from(text), false)).to.equal(undefined);
  });

  it('are left where nobody looks for them', () => {
    const odd = [
      { a: { token_ids: [1, 2] }, choices: [{ token_ids: [3] }] },
      { choices: [{ token_ids: -1, message: { token_ids: [1] } }] },
      { 'a"token_ids': [1], choices: 'token_ids":[1]' },
    ];
    for (const value of odd) expect(parse(JSON.stringify(value))).to.deep.equal(value);
  });
});
