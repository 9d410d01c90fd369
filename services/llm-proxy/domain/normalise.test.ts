import { expect } from 'chai';
import type { JsonObject } from './json.ts';
import { normalised as normalisedIn, RULE_NAMES, type RuleName } from './normalise.ts';

const same = (message: JsonObject): JsonObject => message;
const normalised = (messages: readonly JsonObject[], names: readonly RuleName[]) =>
  normalisedIn(messages, names, { restore: same, unnamed: same });

const user = { role: 'user', content: 'x' };
const header = 'x-anthropic-billing-header: cc_version=2.1.330.a1b; cch=00ff1;';
const text = (value: string, more: object = {}) => ({ type: 'text', text: value, ...more });

describe('normalisation rules', () => {
  it('leave a request alone that has nothing of theirs', () => {
    const messages = [{ role: 'system', content: [text('be brief')] }, user];
    const { messages: kept, by } = normalised(messages, RULE_NAMES);
    expect(kept).to.equal(messages);
    expect(by).to.deep.equal([]);
  });

  it('take out a billing header, as a block, as a line, as a message', () => {
    const system = (content: unknown) => ({ role: 'system', content }) as never;
    const cases: [unknown, unknown][] = [
      [[text(header), text('be brief')], [text('be brief')]],
      [`${header}\n\nbe brief`, 'be brief'],
    ];
    for (const [content, left] of cases) {
      const { messages, by } = normalised([system(content), user], RULE_NAMES);
      expect(messages).to.deep.equal([system(left), user]);
      expect(by).to.deep.equal(['billing-header']);
    }
    expect(normalised([system(header), user], RULE_NAMES).messages).to.deep.equal([user]);
    expect(normalised([system([text(header)]), user], RULE_NAMES).messages).to.deep.equal([user]);
    const quoted = [{ role: 'user', content: header }];
    expect(normalised(quoted, RULE_NAMES).messages).to.equal(quoted);
  });

  it('take out cache marks and private keys', () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const messages = [
      { role: 'user', content: [text('a', mark), text('b')] },
      { role: 'tool', tool_call_id: 'c', content: 'd', ...mark, __copilotMessageSource: 'e' },
      { role: 'assistant', content: 'f', provider_specific_fields: { refusal: null } },
    ];
    const { messages: left, by } = normalised(messages, RULE_NAMES);
    expect(left).to.deep.equal([
      { role: 'user', content: [text('a'), text('b')] },
      { role: 'tool', tool_call_id: 'c', content: 'd' },
      { role: 'assistant', content: 'f' },
    ]);
    expect(by).to.deep.equal(['cache-control', 'private-keys']);
    expect(messages[1]).to.have.property('cache_control');
  });

  it('take out what OpenAI’s client has parsed', () => {
    const call = { id: 'c', type: 'function' };
    const f = { name: 'f', arguments: '{"a": 1}' };
    const said = { role: 'assistant', content: '{"b": 2}' };
    const parsed = [
      { ...call, function: { ...f, parsed_arguments: { a: 1 } } },
      { ...call, function: f },
    ];
    const messages = [user, { ...said, parsed: { b: 2 }, tool_calls: parsed }];
    const { messages: left, by } = normalised(messages, RULE_NAMES);
    const calls = [f, f].map((named) => ({ ...call, function: named }));
    expect(left).to.deep.equal([user, { ...said, tool_calls: calls }]);
    expect(by).to.deep.equal(['private-keys']);
  });

  it('do nothing where they are switched off', () => {
    const messages = [
      { role: 'system', content: header },
      { ...user, __a: 1 },
    ];
    const { messages: left, by } = normalised(messages, ['private-keys']);
    expect(left).to.deep.equal([{ role: 'system', content: header }, user]);
    expect(by).to.deep.equal(['private-keys']);
  });
});
