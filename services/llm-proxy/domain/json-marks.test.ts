import { expect } from 'chai';
import { Bytes } from './bytes.ts';
import { hasMoreMarks } from './json-marks.ts';

/** 8 of them outside of strings. */
const TEXT = '{"a":[1,{"b":"{[,\\\\"},"\\",{[",[]],"c,":"é\\\\\\"[,"}';
const MARKS = 8;

describe('the marks of JSON', () => {
  it('are counted outside of strings, wherever its pieces end', () => {
    const bytes = Buffer.from(TEXT);
    for (let i = 0; i <= bytes.length; i++) {
      const pieces = new Bytes([bytes.subarray(0, i), bytes.subarray(i)]);
      expect(hasMoreMarks(pieces, MARKS), `cut at ${i}`).to.equal(false);
      expect(hasMoreMarks(pieces, MARKS - 1), `cut at ${i}`).to.equal(true);
    }
  });
});
