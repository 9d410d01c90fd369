import { clone, create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { RuntimeSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { SharedSpecs } from './shared-specs.ts';

const withUpload = (bytes: number) =>
  create(RuntimeSpecSchema, {
    prepare: [{ step: { case: 'uploadFile', value: { target: '/a', content: new Uint8Array(bytes) } } }],
  });

describe('specs of sandboxes', () => {
  it('with large uploads are kept once, others as they come', () => {
    const specs = new SharedSpecs();
    const large = withUpload(100_000);
    expect(specs.of(large)).to.equal(large);
    expect(specs.of(clone(RuntimeSpecSchema, large))).to.equal(large);
    const other = withUpload(100_001);
    expect(specs.of(other)).to.equal(other);
    const [one, two] = [withUpload(10), withUpload(10)];
    expect([specs.of(one), specs.of(two)]).to.satisfy(([a, b]: unknown[]) => a === one && b === two);
  });
});
