// Values are counted in the bytes of a request as they are in what is made of it.
import { create, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { SubmitTaskRequestSchema } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { binaryValues, jsonValues } from './request-values.ts';

const ALL = Number.POSITIVE_INFINITY;

describe('values of a request', () => {
  const inJson = (text: string, max = ALL): number => jsonValues(Buffer.from(text), max);
  const inBinary = (spec: object, max = ALL): number => {
    const request = create(SubmitTaskRequestSchema, { spec });
    return binaryValues(SubmitTaskRequestSchema, toBinary(SubmitTaskRequestSchema, request), max);
  };

  it('are counted in JSON by brackets and commas, not by those in texts', () => {
    expect(inJson('{"a": [1, {}, ["x"]], "b": null}')).to.equal(7);
    expect(inJson('{"a\\"[,": "{,\\\\", "b": ",,,"}')).to.equal(2);
    expect(inJson('"open, [')).to.equal(0);
  });

  it('are the fields of a binary form, in messages, lists, maps and free-form parts', () => {
    const withMetadata = (metadata: JsonObject): number => inBinary({ metadata }) - inBinary({});
    expect(inBinary({})).to.equal(1);
    expect(inBinary({ taskId: 't', instruction: '\n\u0001\n\u0001'.repeat(99) })).to.equal(3);
    expect(inBinary({ runtime: { env: { A: 'a', B: 'b' } } })).to.equal(2 + 2 * 3);
    const files = Array.from({ length: 9 }, () => ({}));
    const prepare = [{ step: { case: 'uploadDir', value: { files } } }];
    expect(inBinary({ runtime: { prepare } })).to.equal(4 + 9);
    // An entry, its key, its value, what kind that is; the list's values, each of a kind.
    expect(withMetadata({ a: [true, false] })).to.equal(1 + 4 + 2 * 2);
    expect(withMetadata({ a: { b: 1 } })).to.equal(1 + 4 + 4);
  });

  it('are not counted further than asked for', () => {
    expect(inJson('[1,1,1,1,1,1]', 3)).to.equal(4);
    expect(inBinary({ harness: { artifacts: ['a', 'b', 'c', 'd'] } }, 3)).to.equal(4);
  });
});
