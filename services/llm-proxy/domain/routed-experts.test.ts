import { expect } from 'chai';
import { packIds } from '../../common/columns.ts';
import { type ExpertFields, expertFields, KnownRows, type ToldRows } from './routed-experts.ts';

const SHAPE = { layers: 1, topK: 2, experts: 8 };
const column = (...told: number[]): ToldRows => ({ values: Int32Array.from(told) });
const plain = ({ routedExperts: told, routedExpertsFault: fault }: ExpertFields): unknown =>
  told === undefined ? fault : { rows: [...told.rows], first: told.first, itemBytes: told.itemBytes };

describe('routed experts of a record', () => {
  const THREE = column(0, 1, 2, 3, 4, 5);

  it('are the rows that the base does not have, of what was told', () => {
    const told = { shape: SHAPE, from: 0, rows: THREE };
    expect(plain(expertFields(told, 0, 4))).to.deep.equal({
      rows: [0, 1, 2, 3, 4, 5],
      first: 0,
      itemBytes: 1,
    });
    expect(plain(expertFields(told, 2, 4))).to.deep.equal({ rows: [4, 5], first: 2, itemBytes: 1 });
    for (const first of [3, 4]) expect(plain(expertFields(told, first, 4))).to.equal('');
    // The engine was told that more is known than is known of the base.
    expect(plain(expertFields({ ...told, from: 5 }, 2, 9))).to.deep.include({ first: 5 });
  });

  it('take two bytes above 256 experts', () => {
    const shape = { ...SHAPE, experts: 257 };
    const { routedExperts } = expertFields({ shape, from: 0, rows: column(256, 1) }, 0, 2);
    expect([...routedExperts!.rows]).to.deep.equal([0, 1, 1, 0]);
    expect(routedExperts!.itemBytes).to.equal(2);
    const most = { ...SHAPE, experts: 256 };
    expect(plain(expertFields({ shape: most, from: 0, rows: column(255, 1) }, 0, 2))).to.deep.include({
      itemBytes: 1,
    });
  });

  it('are none where they do not fit', () => {
    const of = (told: ToldRows | undefined, ids = 4, shape = SHAPE): unknown =>
      plain(expertFields({ shape, from: 0, rows: told }, 0, ids));
    expect(of(undefined)).to.equal('absent');
    expect(plain(expertFields({ shape: SHAPE, from: undefined, rows: undefined }, 0, 4))).to.equal(
      'too_large',
    );
    for (const ids of [0, 1, 3, 5]) expect(of(THREE, ids)).to.equal('wrong_length');
    expect(of(THREE, 4, { ...SHAPE, topK: 3 })).to.equal('wrong_length');
    expect(of({ values: new Uint8Array(5) })).to.equal('wrong_length');
    const { values } = THREE;
    expect(of({ values, shape: [3, 1, 2] })).to.be.an('object');
    for (const shape of [[3, 2, 1], [2, 1, 2], [3, 2], []]) {
      expect(of({ values, shape })).to.equal('wrong_length');
    }
    expect(of(column(0, 1, 2, 3, 4, 8))).to.equal('out_of_range');
    expect(of(column(0, 1, 2, -1, 4, 5))).to.equal('out_of_range');
  });
});

describe('rows that are known of a call', () => {
  const record = (index: number, baseIndex: number, baseLength: number, first?: number) => ({
    index,
    baseIndex,
    baseLength,
    promptLength: baseLength + 2,
    sampledIds: packIds([1, 2, 3]),
    routedExperts: first === undefined ? undefined : { first },
  });

  it('are all but its last one, unless rows before its own are missing', () => {
    const known = new KnownRows();
    expect(known.of(-1, 0)).to.equal(0);
    known.add(record(0, -1, 0, 0));
    expect(known.of(0, 5)).to.equal(4);
    expect(known.of(0, 2)).to.equal(2);
    known.add(record(1, 0, 5));
    expect(known.of(1, 10)).to.equal(4);
    known.add(record(2, 1, 10, 4));
    expect(known.of(2, 15)).to.equal(14);
    known.add(record(3, 1, 10, 9));
    expect(known.of(3, 15)).to.equal(4);
    known.add(record(4, 0, 2, 2));
    expect(known.of(4, 7)).to.equal(6);
  });
});
