import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Completion, CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { reasonOf } from '../../../test/support/reason-of.ts';
import { packIds } from '../../common/columns.ts';
import { expand, inOrder } from './expand.ts';
import { idsOf } from './token-tree.ts';

const record = (index: number, changes: MessageInitShape<typeof CompletionSchema> = {}): Completion =>
  create(CompletionSchema, {
    callId: `c${index}`,
    index,
    baseIndex: -1,
    promptSuffixIds: packIds([1, 2]),
    promptLength: 2,
    sampledIds: packIds([3]),
    finishReason: 'stop',
    trainable: true,
    ...changes,
  });

describe('expand', () => {
  it('restores a prompt from a part of its base and what is new', () => {
    const [, whole, part] = expand([
      record(0),
      record(1, { baseIndex: 0, baseLength: 3, promptSuffixIds: packIds([9]), promptLength: 4 }),
      record(2, { baseIndex: 1, baseLength: 1, promptSuffixIds: packIds([7]), promptLength: 2 }),
    ]);
    expect([...idsOf(whole!.prompt)]).to.deep.equal([1, 2, 3, 9]);
    expect([...idsOf(part!.prompt)]).to.deep.equal([1, 7]);
    expect([...idsOf(part!.end)]).to.deep.equal([1, 7, 3]);
  });

  it('tells a reply that was never delivered from an empty one, and fills the role in', () => {
    const [lost, empty] = expand([record(0), record(1, { replyDigest: 'd', role: 'sub' })]);
    expect(lost).to.include({ reply: null, role: 'main' });
    expect(empty).to.include({ reply: 'd', role: 'sub' });
  });

  it('refuses a record that cannot be right', () => {
    const bad: MessageInitShape<typeof CompletionSchema>[] = [
      { baseIndex: 1, baseLength: 1 },
      { baseIndex: 0, baseLength: 4, promptLength: 6 },
      { promptLength: 3 },
      { sampledIds: new Uint8Array(3) },
      { logprobs: new Uint8Array(5) },
    ];
    for (const changes of bad) {
      expect(reasonOf(() => expand([record(0), record(1, changes)]))).to.equal('RECORDS_INVALID');
    }
  });
});

describe('inOrder', () => {
  it('puts records in order of their index, each once', () => {
    const records = [record(1), record(0), record(1)];
    expect(inOrder(records, 2).map(({ index }) => index)).to.deep.equal([0, 1]);
  });

  it('refuses a hole, too few and too many', () => {
    for (const [indexes, count] of [
      [[0, 2], 3],
      [[0, 2], 2],
      [[0], 2],
      [[0, 1, 2], 2],
    ] as const) {
      const records = indexes.map((index) => record(index));
      expect(reasonOf(() => inOrder(records, count))).to.equal('RECORDS_MISSING');
    }
  });
});
