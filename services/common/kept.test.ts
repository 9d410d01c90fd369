import { expect } from 'chai';
import { heldBytes } from '../../test/support/held-bytes.ts';
import { Kept } from './kept.ts';

describe('kept', () => {
  it('makes what is asked for once, and lets go of what was used longest ago', () => {
    const kept = new Kept<number>(2);
    let made = 0;
    const get = (key: string): number => kept.get(key, () => ++made);
    expect([get('a'), get('b'), get('a'), get('c'), get('a'), get('b')]).to.deep.equal([1, 2, 1, 3, 1, 4]);
  });

  it('keeps no promise that was rejected', async () => {
    const kept = new Kept<Promise<number>>(2);
    const failed = kept.get('a', () => Promise.reject(new Error('no')));
    expect(await failed.catch(({ message }) => message as string)).to.equal('no');
    expect(await kept.get('a', async () => 7)).to.equal(7);
  });

  it('keeps a value that is falsy', () => {
    const kept = new Kept<number>(2);
    kept.get('a', () => 0);
    expect(kept.get('a', () => 1)).to.equal(0);
  });

  it('tells long keys apart, and holds none of them', () => {
    const [keys, chars] = [32, 1_000_000];
    const kept = new Kept<number>(keys);
    const before = heldBytes();
    for (let i = 0; i < keys; i++) kept.get(`${'x'.repeat(chars)}${i}`, () => i);
    expect(heldBytes() - before).to.be.below(chars * 4);
    expect(kept.get(`${'x'.repeat(chars)}7`, () => -1)).to.equal(7);
    kept.delete(`${'x'.repeat(chars)}7`);
    expect(kept.get(`${'x'.repeat(chars)}7`, () => -1)).to.equal(-1);
  });
});
