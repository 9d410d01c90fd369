import { create, fromBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CursorSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { acked, copied } from './cursor.ts';
import { cursorBytes } from './cursor-bytes.ts';

describe('the bytes of a cursor', () => {
  it('say the same as it does, before and behind its changes', () => {
    const cursor = create(CursorSchema, {
      ...{ taskId: 't', sent: 9n, sentCount: 3n, seeks: 5n, members: [{ number: 1, streamId: 's' }] },
      unacked: [4n, 7n, 9n].map((batchId, i) => ({
        ...{ batchId, ordinal: BigInt(i + 1), deliveries: 1, member: 1, nackReason: `${i}` },
        droppedSessions: { stale: i },
      })),
    });
    const same = (): void => {
      expect(fromBinary(CursorSchema, cursorBytes(cursor))).to.deep.equal(cursor);
      expect(fromBinary(CursorSchema, cursorBytes(cursor)), 'again').to.deep.equal(cursor);
    };
    same();
    const next = acked(cursor, [7n]);
    expect(fromBinary(CursorSchema, cursorBytes(next)).unacked.map(({ batchId }) => batchId)).to.deep.equal([
      4n,
      9n,
    ]);
    const nacked = copied(next);
    nacked.unacked[0] = { ...next.unacked[0]!, nacks: 1 };
    expect(fromBinary(CursorSchema, cursorBytes(nacked)).unacked.map(({ nacks }) => nacks)).to.deep.equal([
      1, 0,
    ]);
    same();
  });
});
