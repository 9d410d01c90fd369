import { expect } from 'chai';
import { seeded } from '../../../test/support/laws.ts';
import { TokenTree } from '../domain/token-tree.ts';
import { type IdsOfCall, IdTexts } from './id-texts.ts';

/** Calls, one after another. */
class Calls {
  readonly #tree = new TokenTree();

  /** Goes on from the first `keep` ids of an earlier one. */
  add(from: number, keep: number, ...fresh: number[]): IdsOfCall {
    const base = { index: keep === 0 ? -1 : from, length: keep };
    const index = this.#tree.size;
    this.#tree.add(base, Int32Array.from(fresh), new Int32Array());
    return this.at(index);
  }

  at(index: number): IdsOfCall {
    const tree = this.#tree;
    const ids = {
      length: tree.lengthOf(index),
      from: (place: number) => tree.idsOf(index, place),
      extend: (call: number) => tree.extends(index, call),
    };
    return { index, ids };
  }
}

const ids = (...values: number[]): Int32Array => Int32Array.from(values);
const textOf = (texts: IdTexts, session: string, call: IdsOfCall, ...tail: number[]): string =>
  Buffer.concat([...texts.of(session, call, ids(...tail))]).toString();

describe('ids as text', () => {
  it('is what JSON has, whatever came before', () => {
    const random = seeded(5);
    const pick = (n: number): number => Math.floor(random() * n);
    const some = (most: number): number[] => Array.from({ length: pick(most) }, () => pick(150_000));
    const texts = new IdTexts();
    const calls = new Calls();
    calls.add(-1, 0, 1);
    for (let turn = 1; turn < 400; turn++) {
      const from = pick(10) === 0 ? pick(turn) : turn - 1;
      const { length } = calls.at(from).ids;
      const call = calls.add(from, pick(10) === 0 ? pick(length + 1) : length, pick(9), ...some(4));
      const tail = some(3);
      const whole = [...call.ids.from(0), ...tail];
      expect(`[${textOf(texts, 's', call, ...tail)}]`).to.equal(JSON.stringify(whole));
    }
  });

  it('keeps sessions apart', () => {
    const texts = new IdTexts();
    const [a, b] = [new Calls(), new Calls()];
    expect(textOf(texts, 'a', a.add(-1, 0, 1, 2))).to.equal('1,2');
    expect(textOf(texts, 'b', b.add(-1, 0, 7))).to.equal('7');
    expect(textOf(texts, 'a', a.add(0, 2, 3))).to.equal('1,2,3');
  });

  it('leaves what is being sent as it is', () => {
    const texts = new IdTexts();
    const calls = new Calls();
    const first = texts.of('a', calls.add(-1, 0, 1, 2), ids(3));
    expect(textOf(texts, 'a', calls.add(0, 2, 4), 5)).to.equal('1,2,4,5');
    expect(Buffer.concat([...first]).toString()).to.equal('1,2,3');
  });

  it('writes out nothing again, of a conversation and of another one beside it', () => {
    const texts = new IdTexts();
    const calls = new Calls();
    const read: number[] = [];
    const watched = (call: IdsOfCall): IdsOfCall => {
      const from = (place: number): Int32Array => {
        read.push(place);
        return call.ids.from(place);
      };
      return { ...call, ids: { ...call.ids, from } };
    };
    texts.of('a', watched(calls.add(-1, 0, 1, 2)), ids());
    texts.of('a', watched(calls.add(-1, 0, 9, 8, 7)), ids());
    texts.of('a', watched(calls.add(0, 2, 3)), ids(4));
    texts.of('a', watched(calls.add(1, 3, 6)), ids());
    texts.of('a', watched(calls.at(2)), ids(5));
    expect(read).to.deep.equal([0, 0, 2, 3]);
  });
});
