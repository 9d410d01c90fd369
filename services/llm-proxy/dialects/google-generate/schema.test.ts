import { expect } from 'chai';
import { jsonSchemaOf } from './schema.ts';

describe('schemas of google-generate', () => {
  it('say in JSON Schema what is in it, and nothing that is Google’s alone: engines refuse types and formats that they do not know', () => {
    const direction = { type: 'STRING', format: 'enum', enum: ['up', 'down'] };
    const schema = jsonSchemaOf({
      type: 'OBJECT',
      properties: {
        direction,
        when: { type: 'STRING', format: 'date-time', nullable: true },
        count: { type: 'INTEGER', format: 'int64' },
        either: { type: 'TYPE_UNSPECIFIED', anyOf: [direction, { type: 0, format: 'enum' }] },
      },
    });
    const plain = { type: 'string', enum: ['up', 'down'] };
    expect(schema).to.deep.equal({
      type: 'object',
      properties: {
        direction: plain,
        when: { type: ['string', 'null'], format: 'date-time' },
        count: { type: 'integer', format: 'int64' },
        either: { anyOf: [plain, {}] },
      },
    });
  });
});
