import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Completion, CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { AttemptState } from './attempt-state.ts';

/** A conversation of letters: the first is one of instructions, `r…` are replies. */
const RECORDS: Partial<Completion>[] = [
  { callId: 'call-a', storedFrom: 1, messageDigests: ['i', 'x'], replyDigest: 'r1', baseIndex: -1 },
  { callId: 'call-b', storedFrom: 0, baseIndex: 0, baseMessageCount: 0, messageDigests: ['x', 'r1', 'y'] },
  { callId: 'call-c', baseIndex: 0, baseMessageCount: 3, messageDigests: ['y'], replyDigest: 'r3' },
  {
    callId: 'call-d',
    storedFrom: 1,
    baseIndex: 2,
    baseMessageCount: 5,
    messageDigests: ['z'],
    replyDigest: 'r4',
  },
];

function stateOf(records: readonly Partial<Completion>[]): AttemptState {
  const state = new AttemptState();
  records.forEach((record, index) => {
    state.apply(create(CompletionSchema, { ...record, index } as Completion), index + 1);
  });
  return state;
}

describe('stored replies', () => {
  const { stored } = stateOf(RECORDS);
  const conversationOf = (previous: string) => stored.find({ previous, replies: [] }).previous;

  it('end their conversations, which begin behind the instructions', () => {
    expect(conversationOf('call-a')).to.deep.equal(['x', 'r1']);
    expect(conversationOf('call-d')).to.deep.equal(['x', 'r1', 'y', 'r3', 'z', 'r4']);
  });

  it('are none that were not delivered, or not to be stored, or are of nobody here', () => {
    for (const call of ['call-b', 'call-c', 'call-e']) expect(conversationOf(call), call).to.equal(undefined);
    const named = stored.find({ previous: undefined, replies: ['call-a', 'call-b', 'call-c', 'call-e'] });
    expect([...named.replies]).to.deep.equal([['call-a', 'r1']]);
    expect(named.previous).to.equal(undefined);
  });
});
