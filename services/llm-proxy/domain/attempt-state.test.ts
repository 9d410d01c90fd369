import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Completion, CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { unpackIds } from '../../common/columns.ts';
import { PolarError } from '../../common/errors.ts';
import { AttemptState, type Draft } from './attempt-state.ts';
import { lastFailureOf } from './last-failure.ts';
import { digestIn, digestMessage, digestTools } from './messages.ts';
import { settingsKey } from './template-settings.ts';

const user = (text: string) => digestMessage({ role: 'user', content: text });
const assistant = (text: string) => digestMessage({ role: 'assistant', content: text });

const draft = (
  promptIds: number[],
  sampledIds: number[],
  { messages = [user('a')], ...more }: Partial<Draft> = {},
): Draft => ({
  promptIds: Int32Array.from(promptIds),
  sampledIds: Int32Array.from(sampledIds),
  messages,
  digests: messages.map(digestIn),
  tools: undefined,
  reply: assistant('b'),
  fields: { callId: 'c', startSeq: 0n, endSeq: 1n },
  ...more,
});

/** As it comes back from a stream. */
const stored = (record: Completion): Completion =>
  fromBinary(CompletionSchema, toBinary(CompletionSchema, record));

describe('attempt state', () => {
  it('encodes each call behind the one before it, and each body once', () => {
    const state = new AttemptState();
    const tools = digestTools([{ name: 'bash' }]);
    const first = state.encode(draft([1, 2], [3], { tools }));
    expect(first).to.include({ index: 0, baseIndex: -1, baseLength: 0, promptLength: 2 });
    expect(Object.keys(first.messageBodies)).to.have.members([
      user('a').digest,
      assistant('b').digest,
      tools.digest,
    ]);
    state.apply(first, 11);
    const messages = [user('a'), assistant('b'), user('c')];
    const second = state.encode(draft([1, 2, 3, 4], [5], { tools, messages, reply: undefined }));
    expect(second).to.include({ index: 1, baseIndex: 0, baseLength: 3, promptLength: 4, replyDigest: '' });
    expect([...unpackIds(second.promptSuffixIds)]).to.deep.equal([4]);
    expect(Object.keys(second.messageBodies)).to.deep.equal([user('c').digest]);
    expect(second.baseMessageCount).to.equal(2);
    expect(second.messageDigests).to.deep.equal([user('c').digest]);
  });

  it('stores what is new in the messages of a call without ids', () => {
    const state = new AttemptState();
    const messages = [user('a'), assistant('b'), user('c')];
    state.apply(state.encode(draft([], [])), 1);
    const second = state.encode(draft([], [], { messages }));
    expect(second).to.include({
      baseIndex: 0,
      baseLength: 0,
      baseMessageCount: 2,
      promptLength: 0,
      drift: '',
    });
    expect(second.messageDigests).to.deep.equal([user('c').digest]);
  });

  it('records a prompt that goes on from a call as it records the same prompt whole', () => {
    const state = new AttemptState();
    state.apply(state.encode(draft([1, 2], [3])), 1);
    const messages = [user('a'), assistant('b'), user('c')];
    state.apply(state.encode(draft([1, 2, 3, 4, 5], [6], { messages })), 2);
    for (const tail of [[4, 5], [4, 5, 6, 7], [4, 9], [8], []]) {
      const whole = state.encode(draft([1, 2, 3, ...tail], [9], { messages }));
      const behind = state.encode(draft(tail, [9], { messages, behind: 0 }));
      expect(behind).to.deep.equal(whole);
      expect(behind.promptLength).to.equal(3 + tail.length);
    }
  });

  it('goes on neither from a frozen model’s ids nor from a call without any', () => {
    const state = new AttemptState();
    const said = { messages: [user('a')], reply: assistant('b') };
    const messages = [user('a'), assistant('b'), user('c')];
    const asked = { messages, digests: messages.map(digestIn), tools: '', settings: settingsKey({}) };
    const record = (ids: number[], trainable: boolean, seq: number): void => {
      const fields = { callId: `c${seq}`, trainable };
      state.apply(state.encode(draft(ids, ids.length > 0 ? [3] : [], { ...said, fields })), seq);
    };
    record([1, 2], false, 1);
    record([], true, 2);
    expect(state.goesOn(asked)).to.be.a('string');
    record([1, 5], true, 3);
    const found = state.goesOn(asked);
    expect(typeof found === 'string' ? found : [...found.ids.from(0)]).to.deep.equal([1, 5, 3]);
  });

  it('is the same again when it is rebuilt from its records', () => {
    const live = new AttemptState();
    const records: Completion[] = [];
    const calls = [
      draft([1, 2], [3]),
      draft([1, 2, 3, 4], [5]),
      draft([1, 9], [], { fields: { endSeq: 9n } }),
    ];
    for (const [i, one] of calls.entries()) {
      const record = live.encode(one);
      live.apply(record, 100 + i);
      records.push(stored(record));
    }
    const rebuilt = new AttemptState();
    for (const [i, record] of records.entries()) rebuilt.apply(record, 100 + i);
    expect(rebuilt).to.include({ calls: 3, firstSeq: 100, lastSeq: 102, nextOrder: 10n });
    const next = draft([1, 2, 3, 4, 5, 6], [7]);
    expect(rebuilt.encode(next)).to.deep.equal(live.encode(next));
  });

  it('refuses a record that is not the next one', () => {
    const state = new AttemptState();
    const record = state.encode(draft([1], [2]));
    state.apply(record, 1);
    expect(() => state.apply(record, 2))
      .to.throw(PolarError)
      .with.property('reason', 'RECORDS_MISSING');
  });
});

describe('the last failure', () => {
  it('is told by the last record only where it was one of infrastructure', () => {
    expect(lastFailureOf('')).to.equal(undefined);
    expect(lastFailureOf('ENGINE_REFUSED')).to.equal(undefined);
    expect(lastFailureOf('SOMETHING_ELSE')).to.equal(undefined);
    expect(lastFailureOf('ENGINE_STREAM_CUT')).to.include({
      reason: 'ENGINE_STREAM_CUT',
      infrastructure: true,
    });
  });
});
