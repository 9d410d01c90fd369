import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { PrepareStepSchema, UploadFileSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';
import { fileOf, filesOf, partsOf } from './paths.ts';

const content = new Uint8Array([1]);
const upload = (target: string, mode = 0) => create(UploadFileSchema, { target, content, mode });
const unsafe = (work: () => unknown): boolean => {
  try {
    work();
    return false;
  } catch (error) {
    return error instanceof PolarError && error.reason === 'UNSAFE_PATH';
  }
};

describe('paths', () => {
  it('reads absolute paths', () => {
    expect(partsOf('/a//b/./c/')).to.eql(['a', 'b', 'c']);
    expect(partsOf('/')).to.eql([]);
  });

  it('refuses what is relative, goes up, or holds NUL', () => {
    for (const path of ['', 'a', './a', '/a/../b', '/..', '/a\0b'])
      expect(
        unsafe(() => partsOf(path)),
        path,
      ).to.equal(true);
  });

  it('gives files their mode, without set-user bits', () => {
    expect(fileOf(upload('/a')).mode).to.equal(0o644);
    expect(fileOf(upload('/a', 0o4755)).mode).to.equal(0o755);
    expect(unsafe(() => fileOf(upload('/')))).to.equal(true);
  });

  it('puts the files of a folder below it, and nowhere else', () => {
    const dir = (target: string, ...names: string[]) =>
      filesOf(
        create(PrepareStepSchema, {
          step: { case: 'uploadDir', value: { target, files: names.map((name) => upload(name)) } },
        }).step,
      ).map(({ path }) => path);
    expect(dir('/x/', 'a', 'b/c')).to.eql(['/x/a', '/x/b/c']);
    for (const name of ['../a', '/etc/passwd', 'a/../../b', '.'])
      expect(
        unsafe(() => dir('/x', name)),
        name,
      ).to.equal(true);
  });
});
