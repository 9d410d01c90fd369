import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Cursor, CursorSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { isDone } from './retention.ts';

const cursor = (taskId: string, sent: number, ...unacked: number[]): Cursor =>
  create(CursorSchema, {
    taskId,
    sent: BigInt(sent),
    unacked: unacked.map((id) => ({ batchId: BigInt(id) })),
  });

describe('retention', () => {
  it('holds a batch until all consumers that it is for have acknowledged it', () => {
    expect(isDone(3, 't', [cursor('', 3), cursor('t', 9, 7)])).to.equal(true);
    expect(isDone(3, 't', [cursor('', 3), cursor('t', 9, 3, 7)])).to.equal(false);
    expect(isDone(3, 't', [cursor('', 2)])).to.equal(false);
  });

  it('holds what nobody reads, and does not ask consumers of other tasks', () => {
    expect(isDone(3, 't', [])).to.equal(false);
    expect(isDone(3, 't', [cursor('other', 9)])).to.equal(false);
    expect(isDone(3, 't', [cursor('other', 0), cursor('', 4)])).to.equal(true);
  });
});
