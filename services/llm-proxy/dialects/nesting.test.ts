import { expect } from 'chai';
import type { JsonObject, JsonValue } from '../domain/json.ts';
import { countValues, NESTING_MAX } from './nesting.ts';

function nested(depth: number): JsonValue {
  let value: JsonValue = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

describe('nesting of requests', () => {
  const body = (depth: number): JsonObject => ({ model: 'm', messages: [nested(depth - 2)] });

  it('is taken up to the limit, and refused above it with the member', () => {
    expect(() => countValues(body(NESTING_MAX))).to.not.throw();
    expect(() => countValues(body(NESTING_MAX + 1))).to.throw('messages');
  });

  it('is found while values are counted, those that are known already too', () => {
    const message = { role: 'user', content: [{ type: 'text', text: 'x' }, 1] };
    for (let i = 0; i < 2; i++) expect(countValues({ model: 'm', messages: [message, 2] })).to.equal(9);
  });

  it('is seen far below, and again', () => {
    const deep = body(100_000);
    for (let i = 0; i < 2; i++)
      expect(() => countValues(deep)).to.throw('messages: must not be nested deeper');
  });
});
