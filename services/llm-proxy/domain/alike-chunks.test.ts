import { expect } from 'chai';
import { alikeOf, ChunkReader } from './alike-chunks.ts';
import type { JsonObject } from './json.ts';

const entry = (token: string, logprob: number | null = -0.5) => ({
  token,
  logprob,
  bytes: [1],
  top_logprobs: [],
});
const vllm = (said: string, more: object = {}) => ({
  id: 'c',
  model: 'm',
  choices: [
    {
      index: 0,
      delta: { content: said },
      logprobs: { content: [entry(said)] },
      finish_reason: null,
      token_ids: [said.length, 7],
      ...more,
    },
  ],
});
const sglang = (said: string) => ({
  id: 'c',
  choices: [
    {
      index: 0,
      delta: { role: null, content: null, reasoning_content: said, tool_calls: null },
      logprobs: { content: [entry('"},"logprobs":{"content":['), entry(said)] },
      finish_reason: null,
      matched_stop: null,
    },
  ],
  usage: null,
});
const SAID = [
  'a',
  ' b',
  '"',
  '\\',
  'ä\u{1F914}\n',
  '',
  '"},"logprobs":{"content":[',
  '","',
  '"]',
  '[]},"x":"',
  '\u2028',
];

/** Both ways in which engines write JSON. */
const WRITERS: ((value: object) => string)[] = [
  JSON.stringify,
  (value) => JSON.stringify(value).replaceAll(/(?<=":|",|\d,|\},)(?=["[{\d-])/g, ' '),
];

describe('chunks that are alike', () => {
  for (const form of [vllm, sglang]) {
    it(`are read as JSON says: ${form.name}`, () => {
      for (const write of WRITERS) {
        const reader = new ChunkReader(() => 'made');
        const texts = ['first', ...SAID, ...SAID].map((said) => write(form(said)));
        const read = texts.map((text) => reader.read(text));
        expect(read.map((chunk) => JSON.stringify(chunk))).to.deep.equal(
          texts.map((text) => JSON.stringify(JSON.parse(text))),
        );
        // What is told of them says that the short way was taken, but for the first one and where nothing is said.
        const known = read.map((chunk) => alikeOf(chunk as JsonObject)?.said);
        expect(known.filter((said) => said !== undefined).length).to.be.at.least(SAID.length);
      }
    });
  }

  it('are told from others between them', () => {
    const reader = new ChunkReader(() => 'made');
    const read = (text: string): string => JSON.stringify(reader.read(text));
    const values = [
      vllm('a'),
      vllm('b'),
      vllm('c', { finish_reason: 'stop' }),
      vllm('d', { index: 1 }),
      vllm('e', { token_ids: 'none' }),
      vllm('f', { logprobs: null }),
      vllm('g', { delta: { tool_calls: [{ index: 0, function: { arguments: '{"content":"x' } }] } }),
      { id: 'c', choices: [] },
      { id: 'c', choices: [vllm('h').choices[0], vllm('i').choices[0]] },
      vllm('j'),
      vllm('k'),
    ];
    for (const value of values) expect(read(JSON.stringify(value))).to.equal(JSON.stringify(value));
    for (const broken of ['', '{', JSON.stringify(vllm('l')).slice(0, -1), `${JSON.stringify(vllm('m'))}}`]) {
      expect(reader.read(broken), broken).to.equal(undefined);
    }
    const hole = vllm('n', { logprobs: { content: [entry('n', null)] } });
    expect(read(JSON.stringify(vllm('n')).replace('-0.5', 'NaN'))).to.equal(JSON.stringify(hole));
  });

  it('have the ids that JSON says, and no others', () => {
    const reader = new ChunkReader(() => 'made');
    const textWith = (ids: string): string =>
      JSON.stringify(vllm('a', { token_ids: ['ids'] })).replace('["ids"]', ids);
    for (const ids of [
      '[0]',
      '[7]',
      '[151643]',
      '[]',
      '[1,2]',
      '[ 3 ]',
      '[-1]',
      '[1.5]',
      '[99999999999999999]',
    ]) {
      const text = textWith(ids);
      expect(JSON.stringify(reader.read(text)), ids).to.equal(JSON.stringify(JSON.parse(text)));
    }
    for (const ids of ['[01]', '[00]', '[1', '[1]]', '[x]']) {
      expect(reader.read(textWith(ids)), ids).to.equal(undefined);
    }
  });

  it('are none where more is to be put right in them', () => {
    const parts = { reasoning_content: 'a', content: [{ type: 'text', text: 'b' }] };
    const called = { content: 'a', tool_calls: [{ function: { name: 'f' } }] };
    for (const delta of [parts, called]) {
      const reader = new ChunkReader(() => 'made');
      const text = JSON.stringify(vllm('', { delta }));
      for (let i = 0; i < 2; i++) expect(alikeOf(reader.read(text) as JsonObject), text).to.equal(undefined);
    }
  });

  it('have the id that is made for their stream where they come without', () => {
    let made = 0;
    const idsOf = (reader: ChunkReader): unknown[] =>
      ['', 'x', 'a', 'b'].map((said) => {
        const text = JSON.stringify({ ...vllm(said), id: said === 'x' ? '' : undefined });
        return (reader.read(text) as JsonObject)['id'];
      });
    for (const id of ['made0', 'made1']) {
      expect(idsOf(new ChunkReader(() => `made${made++}`))).to.deep.equal([id, id, id, id]);
    }
  });

  it('have values of their own', () => {
    const reader = new ChunkReader(() => 'made');
    const [, first, second] = ['x', 'a', 'b'].map((said) => reader.read(JSON.stringify(vllm(said))));
    const [choice] = (first as JsonObject)['choices'] as JsonObject[];
    Object.assign(choice as JsonObject, { delta: {} });
    expect(JSON.stringify(second)).to.equal(JSON.stringify(vllm('b')));
  });
});
