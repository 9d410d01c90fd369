import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { EvaluatedSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { bounded, resultsJson, tailOf } from './evaluation.ts';

const size = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

describe('what an evaluator tells', () => {
  it('stays as it is within the limit', () => {
    const evaluation = { resolved: true, results: { a: 'PASSED' }, test_output_tail: 'x' };
    expect(bounded(evaluation, 1_000)).to.deep.equal(evaluation);
  });

  it('is cut at its longest parts, which are named', () => {
    const results = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`test_${i}`, 'PASSED']));
    const told = bounded({ resolved: false, results, test_output_tail: 'y'.repeat(500) }, 2_000);
    expect(size(told)).to.be.at.most(2_000);
    expect(told['resolved']).to.equal(false);
    expect(told['cut']).to.deep.equal(['results']);
    expect(Object.keys(told['results'] as object)).to.include('test_0');
  });

  it('fits whatever is in it', () => {
    for (const huge of ['\\"\u0001'.repeat(50_000), '🦊'.repeat(50_000), Array.from('x'.repeat(90_000))]) {
      expect(size(bounded({ a: huge, b: 'x'.repeat(60_000), c: 1 }, 1_000))).to.be.at.most(1_000);
    }
  });

  it('fits where a name alone is too long, and ends there', () => {
    const name = 'x'.repeat(9_000);
    for (const inner of ['PASSED', [], [[]], {}, { a: {} }]) {
      expect(bounded({ results: { [name]: inner } }, 100)).to.deep.equal({ results: {}, cut: ['results'] });
    }
  });

  it('keeps of lists by their kind what stands first', () => {
    const names = Array.from({ length: 5_000 }, (_, index) => `test_${index}`);
    const { PASS_TO_PASS: kept } = bounded({ PASS_TO_PASS: { failure: names, success: names } }, 10_000);
    const { failure } = kept as { failure: string[] };
    expect(failure.length).to.be.greaterThan(300);
    expect(kept).to.deep.equal({ failure: names.slice(0, failure.length) });
  });

  it('can be sent, wherever a text was cut', () => {
    for (const length of [1_999, 2_000, 2_001, 2_002]) {
      const evaluation = bounded({ tail: tailOf(Buffer.from('🦊'.repeat(2_000)), length) }, 3_000);
      const bytes = toBinary(EvaluatedSchema, create(EvaluatedSchema, { evaluation }));
      expect(fromBinary(EvaluatedSchema, bytes).evaluation).to.deep.equal(evaluation);
    }
  });
});

describe('the tail of an output', () => {
  it('is its end, readable', () => {
    expect(tailOf(Buffer.from('one\n\x1b[31mtwo\x1b[0m\0\x07\tthree\r\n'), 10)).to.equal('two\tthree\n');
    expect(tailOf(Buffer.from('abcdef'), 3)).to.equal('def');
  });
});

describe('results as JSON', () => {
  it('begin with what differs', () => {
    const parsed = new Map([
      ['a', 'PASSED'],
      ['b', 'FAILED'],
      ['c', 'PASSED'],
    ]);
    const wanted = new Map([
      ['a', 'PASSED'],
      ['b', 'PASSED'],
    ]);
    expect(Object.keys(resultsJson(parsed, wanted))).to.deep.equal(['b', 'c', 'a']);
  });
});
