// What vLLM 0.32.0 tells of [[[0,7],[3,1],[255,2]],[[5,4],[0,0],[9,8]]]: made by its own numpy2base64
// (vllm/utils/serial_utils.py, NumPy 2.3.5), from which a reply's routed_experts come.
import { expect } from 'chai';
import { readNpy } from './npy.ts';

const VALUES = [0, 7, 3, 1, 255, 2, 5, 4, 0, 0, 9, 8];
/** The head is filled up with blanks. */
const blanks = (triples: number): string => 'ICAg'.repeat(triples);
const TOLD = {
  uint8: `k05VTVBZAQB2AHsnZGVzY3InOiAnfHUxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDIpLCB9${blanks(18)}IAoABwMB/wIFBAAACQg=`,
  uint16: `k05VTVBZAQB2AHsnZGVzY3InOiAnPHUyJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDIpLCB9${blanks(18)}IAoAAAcAAwABAP8AAgAFAAQAAAAAAAkACAA=`,
  int32: `k05VTVBZAQB2AHsnZGVzY3InOiAnPGk0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDIpLCB9${blanks(18)}IAoAAAAABwAAAAMAAAABAAAA/wAAAAIAAAAFAAAABAAAAAAAAAAAAAAACQAAAAgAAAA=`,
};
const OTHERS = {
  empty: `k05VTVBZAQB2AHsnZGVzY3InOiAnfHUxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDAsIDMsIDIpLCB9${blanks(18)}IAo=`,
  float32: `k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDIpLCB9${blanks(18)}IAoAAAAAAADgQAAAQEAAAIA/AAB/QwAAAEAAAKBAAACAQAAAAAAAAAAAAAAQQQAAAEE=`,
  fortran: `k05VTVBZAQB2AHsnZGVzY3InOiAnfHUxJywgJ2ZvcnRyYW5fb3JkZXInOiBUcnVlLCAnc2hhcGUnOiAoMiwgMywgMiksIH0g${blanks(18)}IAoABQMA/wkHBAEAAgg=`,
};
const read = (told: string): ReturnType<typeof readNpy> => readNpy(Buffer.from(told, 'base64'));

describe('arrays as vLLM tells them', () => {
  for (const [type, told] of Object.entries(TOLD)) {
    it(`are read: ${type}`, () => {
      const array = read(told);
      expect(array?.shape).to.deep.equal([2, 3, 2]);
      expect([...array!.values]).to.deep.equal(VALUES);
    });
  }

  it('may have no rows', () => {
    expect(read(OTHERS.empty)).to.deep.equal({ shape: [0, 3, 2], values: new Uint8Array() });
  });

  it('are none where they are of another type or order, break off, or are something else', () => {
    for (const told of [OTHERS.float32, OTHERS.fortran, '', 'k05VTVBZ', 'AAAA'.repeat(50)]) {
      expect(read(told)).to.equal(undefined);
    }
    const whole = Buffer.from(TOLD.uint16, 'base64');
    for (let length = 0; length < whole.length; length++) {
      expect(readNpy(whole.subarray(0, length))).to.equal(undefined);
    }
    expect(readNpy(Buffer.concat([whole, Buffer.of(0)]))).to.equal(undefined);
    const long = Buffer.from(whole);
    long.writeUInt16LE(0xffff, 8);
    expect(readNpy(long)).to.equal(undefined);
  });
});
