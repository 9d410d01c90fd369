import { expect } from 'chai';
import { chance, someReply, words } from '../../../../test/support/generated.ts';
import type { WireReply } from '../../../../test/support/wire-engine.ts';
import { asPolarError, type PolarError } from '../../../common/errors.ts';
import { PROXY_BODY_BYTES_MAX } from '../../../common/limits.ts';
import { arrayOf, type JsonObject, type JsonValue, objectOf } from '../../domain/json.ts';
import type { Found } from '../../domain/stored-replies.ts';
import type { Asked } from '../dialect.ts';
import { readRequest } from '../dialects.ts';
import { openaiResponses } from './dialect.ts';

const TARGET = { kind: 'generate', dialect: 'openai-responses' } as const;
const TOOLS: JsonValue = [
  { type: 'function', name: 'read' },
  { type: 'namespace', name: 'files', tools: [{ type: 'function', name: 'list' }] },
  { type: 'custom', name: 'patch' },
];
const NAMES = { functions: ['read', 'files__list'], custom: ['patch'] };

const read = (body: JsonObject, found?: Found<JsonObject>): Asked =>
  readRequest(openaiResponses, { tools: TOOLS, ...body }, TARGET, { imageUrls: true }, { found }).asked;

const found = (previous: readonly JsonObject[] | undefined, replies = {}): Found<JsonObject> => ({
  previous,
  replies: new Map<string, JsonObject>(Object.entries(replies)),
});

/** What an engine says, as it is recorded. */
const saidBy = ({ content, reasoning, toolCalls }: WireReply): JsonObject => ({
  role: 'assistant',
  content: content ?? null,
  refusal: null,
  ...(reasoning !== undefined && { reasoning }),
  ...(toolCalls && {
    tool_calls: toolCalls.map(({ id, ...called }) => ({ id, type: 'function', function: called })),
  }),
});

const reference = ({ id }: JsonObject): JsonObject => ({ type: 'item_reference', id: id ?? null });

const outputs = (message: JsonObject): JsonObject[] =>
  arrayOf(message['tool_calls']).map((call) => ({
    type: 'function_call_output',
    call_id: objectOf(call)['id'] ?? null,
    output: 'done',
  }));

const itemsOf = (message: JsonObject, callId: string): JsonObject[] => {
  const { output } = read({ input: 'x' })
    .writer('m', callId)
    .whole({ id: 'chatcmpl-1', choices: [{ message: { ...message }, finish_reason: 'stop' }] });
  return output as unknown as JsonObject[];
};

function refusalOf(work: () => unknown): PolarError {
  try {
    work();
  } catch (error) {
    return asPolarError(error);
  }
  throw new Error('it was not refused');
}

describe('openai-responses: what is named instead of being sent', () => {
  it('says what the items themselves would, one by one or by the response', () => {
    const random = chance(11);
    for (let n = 0; n < 200; n++) {
      const first = saidBy(someReply(random, 1, NAMES));
      const second = saidBy(someReply(random, 2, NAMES));
      const [one, other] = [itemsOf(first, 'call-a'), itemsOf(second, 'call-b')];
      const asks = { role: 'user', content: words(random, 9) };
      const more = [...outputs(second), { role: 'user', content: 'y' }];
      const between = [...outputs(first), asks];
      const sent = read({ input: [asks, ...one, ...between, ...other, ...more] }).messages;
      const replies = { 'call-a': first, 'call-b': second };
      const named = [asks, ...one.map(reference), ...between, ...other.map(reference), ...more];
      expect(read({ input: named }, found(undefined, replies)).messages).to.deep.equal(sent);

      const before = [asks, first, ...sent.slice(one.length > 0 ? 2 : 1).slice(0, between.length), second];
      const gone = read({ previous_response_id: 'resp_b', input: more }, found(before)).messages;
      // A reply that says nothing has no items.
      const saidNothing = ({ role, content, ...rest }: JsonObject): boolean =>
        role === 'assistant' && content === '' && Object.keys(rest).length === 0;
      expect(gone.filter((message) => !saidNothing(message))).to.deep.equal(sent);
    }
  });

  it('is the very same message in each turn, so that it is digested once', () => {
    const said = saidBy({ content: 'x', reasoning: 'why' });
    const stored = found([{ role: 'user', content: 'x' }, said], { 'call-a': said });
    const input = [
      { type: 'item_reference', id: 'rs_a_0' },
      { id: 'msg_a_0' },
      { role: 'user', content: 'y' },
    ];
    const [one, other] = [read({ input }, stored).messages, read({ input: [...input] }, stored).messages];
    expect(other[0]).to.equal(one[0]);
    const gone = () => read({ previous_response_id: 'resp_a', input: 'y' }, stored).messages;
    expect(gone()[1]).to.equal(gone()[1]);
  });

  it('is whole where it was shown in several items, around calls', () => {
    const toolCalls = ['a', 'b'].map((id) => ({ id, name: 'read', arguments: '{}' }));
    const said = saidBy({ content: 'x', reasoning: 'why', toolCalls });
    const ids = ['rs_a_0', 'msg_a_0', 'fc_a_0', 'rs_a_1', 'msg_a_1', 'fc_a_1'];
    const input = [...ids.map((id) => ({ type: 'item_reference', id })), ...outputs(said)];
    const [named] = read({ input }, found(undefined, { 'call-a': said })).messages;
    const { content, tool_calls } = said;
    expect(named).to.deep.equal({ role: 'assistant', content, reasoning_content: 'why', tool_calls });
  });

  it('stays apart where two replies said the same', () => {
    const said = saidBy({ content: 'x' });
    const input = [
      { type: 'item_reference', id: 'msg_a_0' },
      { type: 'item_reference', id: 'msg_b_0' },
    ];
    expect(read({ input }, found(undefined, { 'call-a': said, 'call-b': said })).messages).to.have.length(2);
  });

  it('goes on behind the instructions of this request, and needs no input', () => {
    const before = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'so' },
    ];
    const body = { previous_response_id: 'resp_a', instructions: 'Be brief.' };
    const roles = (more: JsonObject) =>
      read({ ...body, ...more }, found(before)).messages.map(({ role }) => role);
    expect(roles({ input: 'y' })).to.deep.equal(['system', 'user', 'assistant', 'user']);
    expect(roles({})).to.deep.equal(['system', 'user', 'assistant']);
  });

  it('is found from behind the instructions, and not at all where nothing is to be stored', () => {
    const storedFrom = (more: JsonObject) => read({ input: 'x', ...more }).storedFrom;
    expect(storedFrom({})).to.equal(0);
    expect(storedFrom({ store: true, instructions: 'Be brief.' })).to.equal(1);
    expect(storedFrom({ store: null, instructions: '' })).to.equal(0);
    expect(storedFrom({ store: false, instructions: 'Be brief.' })).to.equal(undefined);
  });

  it('is told by the ids of calls alone', () => {
    const refersTo = (body: JsonObject) => openaiResponses.refersTo?.(body);
    expect(refersTo({ input: 'x' })).to.equal(undefined);
    expect(refersTo({ input: [{ role: 'user', content: 'x', id: 'msg_1_0' }] })).to.equal(undefined);
    expect(refersTo({ input: [{ type: 'item_reference', id: 'odd' }], previous_response_id: 5 })).to.equal(
      undefined,
    );
    const input = [
      { type: 'item_reference', id: 'rs_a_0' },
      { type: 'item_reference', id: 'fc_a_1' },
      { id: 'msg_b_0' },
    ];
    expect(refersTo({ input, previous_response_id: 'resp_c' })).to.deep.equal({
      previous: 'call-c',
      replies: ['call-a', 'call-b'],
    });
  });

  it('is refused by its field where it is not there', () => {
    const unknown = refusalOf(() => read({ previous_response_id: 'resp_a', input: 'x' }, found(undefined)));
    expect(openaiResponses.errorBody(unknown, 400)['error']).to.deep.include({
      param: 'previous_response_id',
      type: 'invalid_request_error',
      code: 'previous_response_not_found',
    });
    const long = refusalOf(() => read({ previous_response_id: 'x'.repeat(1_000), input: 'x' }));
    expect(long.message).to.have.length.below(200);
    const input = [{ type: 'item_reference', id: 'fc_a_1' }];
    const oneCall = saidBy({ toolCalls: [{ id: 'c', name: 'read', arguments: '{}' }] });
    const missing = refusalOf(() => read({ input }, found(undefined, { 'call-a': oneCall })));
    expect(openaiResponses.errorBody(missing, 400)['error']).to.deep.include({
      param: 'input[0].id',
      code: 'dialect_invalid',
      message: "input[0].id: Item with id 'fc_a_1' not found.",
    });
  });

  it('is no more than a harness could send, however often it is named', () => {
    const said = saidBy({ content: 'x'.repeat(PROXY_BODY_BYTES_MAX / 8) });
    const input = (times: number) => Array(times).fill({ type: 'item_reference', id: 'msg_a_0' });
    const stored = found(undefined, { 'call-a': said });
    expect(read({ input: input(8) }, stored).messages).to.have.length(1);
    expect(refusalOf(() => read({ input: input(9) }, stored)).fields[0]?.field).to.equal('input[8]');
    const long = found(Array(50_000).fill({ role: 'user', content: 'x' }));
    expect(() => read({ previous_response_id: 'resp_a', input: 'y' }, long)).to.throw(
      'at most 50000 messages',
    );
  });
});
