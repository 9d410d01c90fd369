import { expect } from 'chai';
import { HeadTail } from './head-tail.ts';
import { unread } from './unread.ts';

const EDGE = 4;
const rest = (pushed: string, offset: number): string => {
  const output = new HeadTail(EDGE);
  output.push(Buffer.from(pushed));
  return Buffer.from(unread(output.bytes(), output.sizeBytes, offset, EDGE)).toString();
};

describe('what is unread of an output', () => {
  it('is what lies behind the offset', () => {
    expect(rest('abcdef', 0)).to.equal('abcdef');
    expect(rest('abcdef', 2)).to.equal('cdef');
    expect(rest('abcdef', 5)).to.equal('f');
    expect(rest('abcdef', 6)).to.equal('');
  });

  it('says what is missing once, and never tells the beginning again', () => {
    expect(rest('abcdefghijkl', 0)).to.equal('abcd\n[4 bytes left out]\nijkl');
    expect(rest('abcdefghijkl', 4)).to.equal('\n[4 bytes left out]\nijkl');
    expect(rest('abcdefghijkl', 8)).to.equal('ijkl');
    expect(rest('abcdefghijkl', 11)).to.equal('l');
  });

  it('is nothing beyond the end', () => {
    expect(rest('ab', 9)).to.equal('');
    expect(rest('', 0)).to.equal('');
  });
});
