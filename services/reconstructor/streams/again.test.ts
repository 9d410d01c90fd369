import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TrajectoryBatchSchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { AHEAD_BATCHES_MAX, AHEAD_BYTES_MAX } from '../../common/limits.ts';
import { Again } from './again.ts';

const ended = new AbortController();

/** Batches that are there as soon as there is room for them, except those of `removed` and `broken`. */
function opened({ sizeBytes = 1, removed = 0, broken = 0 } = {}) {
  const asked: number[] = [];
  const fetched: number[] = [];
  const again = new Again(
    async (batchId, room) => {
      asked.push(batchId);
      if (batchId === removed) return undefined;
      await room(sizeBytes);
      fetched.push(batchId);
      if (batchId === broken) throw new Error('broken');
      const batch = create(TrajectoryBatchSchema, { batchId: BigInt(batchId) });
      return { batchId, storedMs: 1, batch, sizeBytes, tokens: 1, memory: [] };
    },
    ended.signal,
    () => {},
  );
  const ready = async (ids: readonly number[]): Promise<number[]> => {
    again.ready(ids);
    await new Promise(setImmediate);
    return again.ready(ids).map(({ batchId }) => batchId);
  };
  return { again, ready, asked, fetched };
}

describe('batches that come again', () => {
  after(() => ended.abort());

  it('are fetched in their order, as many as there is room for', async () => {
    const many = Array.from({ length: AHEAD_BATCHES_MAX + 10 }, (_, i) => i + 1);
    expect(await opened().ready(many)).to.deep.equal(many.slice(0, AHEAD_BATCHES_MAX));
    const large = opened({ sizeBytes: AHEAD_BYTES_MAX / 2 });
    expect(await large.ready([3, 5, 7, 9])).to.deep.equal([3, 5]);
    expect(await large.ready([5, 7, 9])).to.deep.equal([5, 7]);
    expect(large.fetched).to.deep.equal([3, 5, 7]);
    expect(await opened({ sizeBytes: AHEAD_BYTES_MAX * 4 }).ready([3, 5])).to.deep.equal([3]);
  });

  it('are looked for once while they wait for room, also behind one that is larger than all of it', async () => {
    const { ready, asked } = opened({ sizeBytes: AHEAD_BYTES_MAX * 2 });
    for (let i = 0; i < 3; i++) expect(await ready([3, 5, 7])).to.deep.equal([3]);
    expect(asked).to.deep.equal([3, 5, 7]);
  });

  it('make room for one that comes in front of them', async () => {
    const { ready, fetched } = opened({ sizeBytes: AHEAD_BYTES_MAX });
    expect(await ready([5, 7])).to.deep.equal([5]);
    expect(await ready([2, 5, 7])).to.deep.equal([2]);
    expect(await ready([5, 7])).to.deep.equal([5]);
    expect(fetched).to.deep.equal([5, 2, 5]);
  });

  it('are fetched anew once they were taken', async () => {
    const { again, ready, fetched } = opened();
    expect(await ready([3, 5])).to.deep.equal([3, 5]);
    again.take(new Set([3]));
    expect(again.ready([3, 5])).to.deep.equal([]);
    expect(await ready([3, 5])).to.deep.equal([3, 5]);
    expect(fetched).to.deep.equal([3, 5, 3]);
  });

  it('pass over what was removed, and end only where the first cannot be had', async () => {
    expect(await opened({ removed: 3 }).ready([3, 5])).to.deep.equal([5]);
    const { again, ready } = opened({ broken: 5 });
    expect(await ready([3, 5, 7])).to.deep.equal([3]);
    expect(() => again.ready([5, 7])).to.throw('broken');
  });
});
