import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { finalOf, repliesOf } from './replies.ts';

/** A call that began at `start`, and what it replied. */
const call = (start: number, message: unknown, more: MessageInitShape<typeof CompletionSchema> = {}) =>
  create(CompletionSchema, {
    ...{ callId: `c${start}`, startSeq: BigInt(start), role: 'main', trainable: true },
    ...{ replyDigest: `r${start}`, messageBodies: { [`r${start}`]: JSON.stringify(message) } },
    ...more,
  });

describe('replies', () => {
  it('are those of the policy that were delivered, by the start of their calls', () => {
    const records = [
      call(4, { content: 'four' }),
      call(1, { content: 'one' }),
      call(2, { content: 'a title' }, { role: 'side' }),
      call(3, { content: 'three' }, { role: 'sub' }),
      call(5, { content: 'frozen' }, { trainable: false }),
      call(6, { content: 'lost' }, { replyDigest: '' }),
    ];
    const replies = repliesOf(records);
    expect(replies.map(({ callId, text }) => [callId, text])).to.deep.equal([
      ['c1', 'one'],
      ['c3', 'three'],
      ['c4', 'four'],
    ]);
    expect(finalOf(replies)?.callId).to.equal('c4');
  });

  it('are texts alone, without reasoning', () => {
    const textOf = (message: unknown): string | undefined => repliesOf([call(1, message)])[0]?.text;
    expect(
      textOf({ content: [{ type: 'text', text: 'a' }, { type: 'image_url' }, null, { text: 'b' }] }),
    ).to.equal('ab');
    expect(textOf({ content: 'Answer: 1</think>\nAnswer: 2' })).to.equal('\nAnswer: 2');
    expect(textOf({ content: '<think>Answer: 1</think>two' })).to.equal('two');
    expect(textOf({ content: 'so <think>Answer: 1' })).to.equal('so ');
    expect(textOf({ content: null, reasoning_content: 'x', tool_calls: [{}] })).to.equal('');
    expect(textOf(null)).to.equal('');
  });

  it('end with the last one that says something, of the main conversation', () => {
    const said = call(1, { content: 'it is 4' });
    expect(finalOf(repliesOf([said, call(2, { content: ' ', tool_calls: [{}] })]))?.callId).to.equal('c1');
    expect(finalOf(repliesOf([said, call(2, { content: 'sub' }, { role: 'sub' })]))?.callId).to.equal('c1');
    expect(finalOf(repliesOf([]))).to.equal(undefined);
  });
});
