// What the free-form parts of a task may hold.
import { create, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { FREE_FORM_LEVELS_MAX, valueFaults } from './spec-values.ts';

const withMetadata = (metadata: JsonObject) => create(TaskSpecSchema, { metadata });

/** A value inside so many objects and lists. */
function inside(levels: number, value: JsonValue): JsonObject {
  let found: JsonValue = value;
  for (let i = 0; i < levels; i++) found = i % 2 === levels % 2 ? [found] : { a: found };
  return found as JsonObject;
}

describe('free-form parts of a task', () => {
  it('have a limit of levels, up to which they are taken', () => {
    expect(valueFaults(withMetadata(inside(FREE_FORM_LEVELS_MAX, 1)))).to.deep.equal([]);
    const [fault, ...others] = valueFaults(withMetadata(inside(FREE_FORM_LEVELS_MAX + 1, 1)));
    expect(others).to.deep.equal([]);
    expect(fault?.field).to.equal('metadata');
  });

  it('hold numbers and texts alone that can be shown, in their keys too', () => {
    const odd = {
      a: ['\ud83d\ude00', 'x\ud800'],
      b: { '\udc00': 1 },
      c: [Number.POSITIVE_INFINITY],
      d: null,
    };
    const fields = valueFaults(withMetadata(odd)).map(({ field }) => field);
    expect(fields).to.deep.equal(['metadata.a[1]', 'metadata.b.\ufffd', 'metadata.c[0]']);
  });
});
