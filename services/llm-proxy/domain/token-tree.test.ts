import { expect } from 'chai';
import { TokenTree } from './token-tree.ts';

const ids = (...values: number[]): Int32Array => Int32Array.from(values);

/** Deterministic numbers from 0 to below `n`. */
function random(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

function sharedLength(a: readonly number[], b: readonly number[]): number {
  let n = 0;
  while (n < a.length && n < b.length && a[n] === b[n]) n++;
  return n;
}

describe('token tree', () => {
  it('finds no base in an empty tree, and none for a prompt that begins otherwise', () => {
    const tree = new TokenTree();
    expect(tree.findBase(ids(1, 2))).to.deep.equal({ index: -1, length: 0 });
    tree.add({ index: -1, length: 0 }, ids(1, 2), ids(3));
    expect(tree.findBase(ids(2, 3))).to.deep.equal({ index: -1, length: 0 });
  });

  it('finds the call that a prompt extends', () => {
    const tree = new TokenTree();
    tree.add({ index: -1, length: 0 }, ids(1, 2), ids(3, 4));
    expect(tree.findBase(ids(1, 2, 3, 4, 5))).to.deep.equal({ index: 0, length: 4 });
    tree.add({ index: 0, length: 4 }, ids(5), ids(6));
    expect(tree.findBase(ids(1, 2, 3, 4, 5, 6, 7))).to.deep.equal({ index: 1, length: 6 });
    expect(tree.findBase(ids(1, 2, 3, 4, 9))).to.deep.equal({ index: 0, length: 4 });
  });

  it('takes a shared beginning that ends in the middle of a call', () => {
    const tree = new TokenTree();
    tree.add({ index: -1, length: 0 }, ids(1, 2, 3), ids(4, 5));
    expect(tree.findBase(ids(1, 2, 3, 4, 9))).to.deep.equal({ index: 0, length: 4 });
    expect(tree.findBase(ids(1))).to.deep.equal({ index: 0, length: 1 });
  });

  it('takes calls without any ids', () => {
    const tree = new TokenTree();
    tree.add({ index: -1, length: 0 }, ids(), ids());
    tree.add({ index: -1, length: 0 }, ids(7), ids());
    expect(tree.findBase(ids(7, 8))).to.deep.equal({ index: 1, length: 1 });
    expect(tree.lengthOf(0)).to.equal(0);
  });

  it('refuses a base that is not there', () => {
    const tree = new TokenTree();
    expect(() => tree.add({ index: 0, length: 1 }, ids(), ids())).to.throw(RangeError);
    tree.add({ index: -1, length: 0 }, ids(1), ids());
    expect(() => tree.add({ index: 0, length: 2 }, ids(), ids())).to.throw(RangeError);
  });

  it('restores every prompt of random sessions, sharing as much as there is to share', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const next = random(seed);
      const tree = new TokenTree();
      const wholes: number[][] = [];
      for (let call = 0; call < 40; call++) {
        const from = wholes.length === 0 ? [] : (wholes[next(wholes.length)] as number[]);
        const kept = next(3) === 0 ? from.slice(0, next(from.length + 1)) : from;
        const prompt = [...kept, ...Array.from({ length: next(4) }, () => next(3))];
        const sampled = Array.from({ length: next(4) }, () => next(3));
        const base = tree.findBase(Int32Array.from(prompt));
        const longest = Math.max(0, ...wholes.map((whole) => sharedLength(whole, prompt)));
        expect(base.length).to.equal(longest);
        if (base.index >= 0) expect(sharedLength(wholes[base.index] as number[], prompt)).to.equal(longest);
        for (const [behind, whole] of wholes.entries()) {
          if (sharedLength(whole, prompt) < whole.length) continue;
          expect(tree.findBase(Int32Array.from(prompt.slice(whole.length)), behind)).to.deep.equal(base);
        }
        const extended = wholes.some((whole) => whole.length === longest && longest > 0);
        if (
          extended &&
          wholes.some((whole) => whole.length === longest && sharedLength(whole, prompt) === longest)
        ) {
          expect(tree.lengthOf(base.index)).to.equal(longest);
        }
        tree.add(base, Int32Array.from(prompt.slice(base.length)), Int32Array.from(sampled));
        wholes.push([...prompt, ...sampled]);
        expect(tree.lengthOf(call)).to.equal(prompt.length + sampled.length);
        const start = next(prompt.length + 1);
        const end = prompt.length + next(sampled.length + 1);
        expect([...tree.idsOf(call, start, end)]).to.deep.equal([...prompt, ...sampled].slice(start, end));
        for (const [earlier, whole] of wholes.entries()) {
          const begins = sharedLength(whole, wholes[call] as number[]) === whole.length;
          expect(tree.extends(call, earlier), `${call} of ${earlier}`).to.equal(begins);
        }
      }
    }
  });

  it('handles a long session in time that follows its ids', () => {
    const build = (calls: number): number => {
      const tree = new TokenTree();
      const whole = new Int32Array(calls * 200);
      for (let i = 0; i < whole.length; i++) whole[i] = (i * 7919) % 50_021;
      const start = performance.now();
      for (let call = 0; call < calls; call++) {
        const prompt = whole.subarray(0, call * 200 + 150);
        const base = tree.findBase(prompt);
        tree.add(base, prompt.subarray(base.length), whole.subarray(call * 200 + 150, call * 200 + 200));
        expect(base.length).to.equal(call * 200);
      }
      return performance.now() - start;
    };
    // 1,000 calls with 100 million compared ids; a search through all calls would compare 50 billion.
    expect(build(1_000)).to.be.lessThan(10_000);
  });
});
