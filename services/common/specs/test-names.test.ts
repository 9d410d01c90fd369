import { expect } from 'chai';
import { testOnOutputConfig } from './strategies.ts';
import { contradictions, normaliseName } from './test-names.ts';

describe('names of tests', () => {
  for (const [name, normal] of [
    ['a/b.py::C::d', 'C.d'],
    ['a/b.py::d', 'd'],
    ['a/b.py::C::D::e', 'D.e'],
    ['C.d', 'C.d'],
    ['d', 'd'],
    ['a/b.py', 'a/b.py'],
  ] as const) {
    it(`${name} is ${normal}`, () => expect(normaliseName(name)).to.equal(normal));
  }

  it('contradict each other where they are one and their results differ', () => {
    const expected = { 'x.py::a': 'PASSED', 'y.py::a': 'FAILED', a: 'PASSED', 'x.py::b': 'PASSED' };
    expect(contradictions(expected)).to.deep.equal([['y.py::a', 'x.py::a']]);
  });

  it('do so of pytest alone: others are compared as they are', () => {
    const given = { test_command: 'x', expected_output_json: { 'a::b': 'PASSED', 'c::b': 'FAILED' } };
    expect(testOnOutputConfig.safeParse(given).success).to.equal(false);
    for (const test_format of ['go', 'cargo', 'jest', 'tap', 'junit', 'unittest']) {
      expect(testOnOutputConfig.safeParse({ ...given, test_format }).success, test_format).to.equal(true);
    }
  });
});
