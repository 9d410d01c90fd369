import { expect } from 'chai';
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
});
