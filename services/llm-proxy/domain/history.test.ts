import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { AttemptState, type Draft, type GoesOn } from './attempt-state.ts';
import { type Digested, digestIn, digestMessage, digestTools } from './messages.ts';

const user = (content: string): Digested => digestMessage({ role: 'user', content });
const said = (content: string, more = {}): Digested => digestMessage({ role: 'assistant', content, ...more });
const TOOLS = digestTools([{ name: 'bash' }]);

interface Call {
  readonly messages: readonly Digested[];
  readonly reply?: Digested;
  readonly prompt: readonly number[];
  readonly sampled?: readonly number[];
  readonly tools?: Digested;
  readonly fields?: Draft['fields'];
}

const draftOf = ({ messages, reply, prompt, sampled = [9], tools, fields = {} }: Call): Draft => ({
  promptIds: Int32Array.from(prompt),
  sampledIds: Int32Array.from(sampled),
  messages,
  digests: messages.map(digestIn),
  tools,
  reply,
  fields: { callId: 'c', finishReason: 'stop', mode: 'text', trainable: true, ...fields },
});

/** The state after these calls; once more from what was stored of them. */
function recorded(...calls: Call[]): AttemptState[] {
  const [live, rebuilt] = [new AttemptState(), new AttemptState()];
  for (const [i, call] of calls.entries()) {
    const record = live.encode(draftOf(call));
    live.apply(record, i + 1);
    rebuilt.apply(fromBinary(CompletionSchema, toBinary(CompletionSchema, record)), i + 1);
  }
  return [live, rebuilt];
}

const asked = (messages: readonly Digested[], tools = '', settings = '{}') => ({
  messages,
  digests: messages.map(digestIn),
  tools,
  settings,
});
const FIRST: Call = { messages: [user('a')], reply: said('b'), prompt: [1, 2], sampled: [3, 4] };

describe('the history of an attempt', () => {
  it('tells where a request goes on, and with which ids', () => {
    const second: Call = {
      messages: [user('a'), said('b'), user('c')],
      reply: said('d'),
      prompt: [1, 2, 3, 4, 5],
      sampled: [6],
      fields: { mode: 'token', finishReason: 'length' },
    };
    for (const state of recorded(FIRST, second)) {
      const found = state.goesOn(asked([...second.messages, said('d'), user('e')])) as GoesOn;
      expect(found).to.include({ index: 1, count: 4, lastId: 6, ended: false });
      expect([...found.ids.from(0)]).to.deep.equal([1, 2, 3, 4, 5, 6]);
      expect([0, 1, 2, 3, 4, 5].map(found.sampledAt)).to.deep.equal([false, false, true, true, false, true]);
      expect(found.root.messages).to.equal(1);
      expect([...found.root.ids()]).to.deep.equal([1, 2]);
    }
  });

  it('has the root of the call that it goes on from, whatever the call is with which it shares most', () => {
    const turn = (content: string): Digested[] => [user('a'), said('b'), user(content)];
    const inText: Call = {
      messages: turn('c'),
      reply: said('d'),
      prompt: [1, 2, 3, 4, 5, 50],
      sampled: [6, 7],
    };
    const inTokens: Call = {
      messages: turn('e'),
      reply: said('f'),
      prompt: [1, 2, 3, 4, 5, 60, 61, 62],
      sampled: [8],
    };
    for (const state of recorded(FIRST, inText, { ...inTokens, fields: { mode: 'token' } })) {
      const found = state.goesOn(asked([...inTokens.messages, said('f'), user('g')])) as GoesOn;
      expect(found.root.messages).to.equal(1);
      expect([...found.root.ids()]).to.deep.equal([1, 2]);
      const sampled = Array.from(found.ids.from(0), (_, place) => place).filter(found.sampledAt);
      expect(sampled).to.deep.equal([2, 3, 8]);
    }
  });

  it('takes a turn as ended by the model only where no stop string and no id can have ended it', () => {
    const stopping = { ...FIRST, fields: { sampling: { stop: ['x'] } } };
    const stopped = { ...FIRST, fields: { sampling: { stop_token_ids: [7, 4] } } };
    const passed = { ...FIRST, fields: { sampling: { stop_token_ids: [3] } } };
    const cases = [[FIRST, true] as const, [stopping, false] as const, [stopped, false] as const];
    for (const [call, ended] of [...cases, [passed, true] as const]) {
      for (const state of recorded(call)) {
        const found = state.goesOn(asked([user('a'), said('b'), user('c')])) as GoesOn;
        expect(found.ended).to.equal(ended);
      }
    }
  });

  it('goes on from a reply of the same tools and settings, of several equal ones from the last', () => {
    const withTools: Call = { ...FIRST, prompt: [7, 2], tools: TOOLS };
    for (const state of recorded(FIRST, FIRST, withTools)) {
      const next = [user('a'), said('b'), user('c')];
      expect(state.goesOn(asked(next))).to.include({ index: 1 });
      expect(state.goesOn(asked(next, TOOLS.digest))).to.include({ index: 2 });
      expect(state.goesOn(asked(next, 'other'))).to.equal('tools_changed');
      expect(state.goesOn(asked(next, '', '{"a":1}'))).to.equal('settings_changed');
    }
  });

  it('goes on from before a turn of other tools, or of a frozen model', () => {
    const messages = [user('a'), said('b'), user('c')];
    const between: Call = { messages, reply: said('d'), prompt: [1, 2, 3, 4, 5, 6] };
    const asides: Call[] = [
      { ...between, tools: TOOLS },
      { ...between, fields: { trainable: false } },
    ];
    for (const aside of asides) {
      for (const state of recorded(FIRST, aside)) {
        const found = state.goesOn(asked([...aside.messages, said('d'), user('e')]));
        expect(found).to.include({ index: 0, count: 2 });
        const next = draftOf({ messages: [...messages, said('d'), user('e')], prompt: [5, 7] });
        const record = state.encode({ ...next, behind: 0 });
        expect(record).to.include({ baseIndex: 1, baseLength: 5, drift: '' });
      }
    }
  });

  it('has nowhere to go on from a call without ids or without a reply', () => {
    const [silent] = recorded({ messages: [user('a')], prompt: [1, 2] });
    expect(silent?.goesOn(asked([user('a'), said('b'), user('c')]))).to.be.a('string');
    const [frozen] = recorded({ ...FIRST, fields: { trainable: false } });
    expect(frozen?.goesOn(asked([user('a'), said('b'), user('c')]))).to.be.a('string');
    const [empty] = recorded({ ...FIRST, prompt: [], sampled: [] });
    expect(empty?.goesOn(asked([user('a'), said('b'), user('c')]))).to.be.a('string');
  });

  it('knows a reply without its thinking, from the records too', () => {
    const thinking = said('b', { reasoning_content: 'Hm.' });
    for (const state of recorded({ ...FIRST, reply: thinking })) {
      expect(state.goesOn(asked([user('a'), said('b'), user('c')]))).to.equal('reasoning_dropped');
      expect(state.goesOn(asked([user('a'), thinking, user('c')]))).to.include({ index: 0 });
    }
  });

  it('says on the record why a prompt does not extend its conversation', () => {
    const thinking = said('b', { reasoning_content: 'Hm.' });
    const next = (reply: Digested, prompt: number[], more: Partial<Call> = {}): Call => ({
      messages: [user('a'), reply, user('c')],
      prompt,
      ...more,
    });
    const cases: [string, Call, Call][] = [
      ['', FIRST, next(said('b'), [1, 2, 3, 4, 5])],
      ['retokenised', FIRST, next(said('b'), [1, 2, 3, 44, 5])],
      ['tools_changed', FIRST, next(said('b'), [7, 1, 2, 3], { tools: TOOLS })],
      ['reasoning_dropped', { ...FIRST, reply: thinking }, next(thinking, [1, 2, 4, 5])],
      ['not_rendered', FIRST, next(said('b'), [1, 2, 3, 44, 5], { fields: { drift: 'not_rendered' } })],
      ['', FIRST, { messages: [user('z')], prompt: [8, 9] }],
    ];
    for (const [drift, first, second] of cases) {
      for (const state of recorded(first)) expect(state.encode(draftOf(second)).drift).to.equal(drift);
    }
  });
});
