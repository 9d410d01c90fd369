import { expect } from 'chai';
import type { JsonObject } from '../domain/json.ts';
import type { ExpertShape } from '../domain/routed-experts.ts';
import { noTokens } from '../domain/tokens.ts';
import { askExperts, EXPERTS_REPLY_BYTES_MAX } from './ask-experts.ts';
import { Engine } from './engine.ts';

/** 2 KiB of a reply for each id. */
const SHAPE: ExpertShape = { layers: 48, topK: 8, experts: 128 };
/** As many as the half of a reply has room for. */
const IDS = EXPERTS_REPLY_BYTES_MAX / 2 / 2048;

describe('asking for routed experts', () => {
  const engineOf = (experts: ExpertShape | undefined): Engine =>
    new Engine('http://127.0.0.1:1', { kind: 'sglang', model: 'm', key: undefined, callsMax: 1, experts });
  const askedFrom = (sent: JsonObject, given?: { length: number; expertRows: number }, shape = SHAPE) => {
    using engine = engineOf(shape);
    const tokens = noTokens();
    const asked = askExperts(engine, sent, tokens, given);
    expect(asked['return_routed_experts']).to.equal(tokens.expertsFrom === undefined ? undefined : true);
    expect(asked['routed_experts_start_len']).to.equal(tokens.expertsFrom || undefined);
    return tokens.expertsFrom;
  };
  const saying = (content: unknown, fields: JsonObject = {}): JsonObject => ({
    messages: [{ role: 'user', content }] as JsonObject[],
    max_tokens: 1_000,
    ...fields,
  });

  it('is done where the model is known to have some', () => {
    using engine = engineOf(undefined);
    const sent = saying('x');
    expect(askExperts(engine, sent, noTokens())).to.deep.equal({});
    expect(askedFrom(sent)).to.equal(0);
  });

  it('is not done where a long text may have more of them than a reply has room for', () => {
    const most = (IDS - 1_100) * 3;
    expect(askedFrom(saying('x'.repeat(most)))).to.equal(0);
    expect(askedFrom(saying('x'.repeat(most + 1_000)))).to.equal(undefined);
    expect(askedFrom(saying('x'.repeat(most / 2), { n: 2 }))).to.equal(undefined);
    expect(askedFrom(saying('é'.repeat(most / 2 + 1_000)))).to.equal(undefined);
    expect(askedFrom(saying('x', { tools: ['x'.repeat(most + 1_000)] }))).to.equal(undefined);
  });

  it('is not done where so much may be sampled', () => {
    expect(askedFrom(saying('x', { max_tokens: IDS - 100 }))).to.equal(0);
    expect(askedFrom(saying('x', { max_tokens: IDS }))).to.equal(undefined);
    expect(askedFrom(saying('x', { max_completion_tokens: IDS, max_tokens: 1 }))).to.equal(undefined);
    const { max_tokens: _, ...unlimited } = saying('x');
    expect(askedFrom(unlimited)).to.equal(0);
    expect(askedFrom(unlimited, undefined, { ...SHAPE, layers: 61 * 4 })).to.equal(undefined);
  });

  it('does not count what stands for an image', () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(IDS * 4)}` } };
    expect(askedFrom(saying([image]))).to.equal(0);
  });

  it('counts the rows alone that are not known yet where the ids are given', () => {
    const long = saying('x'.repeat(IDS * 4));
    expect(askedFrom(long, { length: IDS * 3, expertRows: IDS * 3 - 500 })).to.equal(IDS * 3 - 500);
    expect(askedFrom(long, { length: IDS * 3, expertRows: IDS })).to.equal(undefined);
  });
});
