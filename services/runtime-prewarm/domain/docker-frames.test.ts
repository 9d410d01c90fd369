import { expect } from 'chai';
import { FrameReader } from './docker-frames.ts';

function frame(stream: number, text: string): Buffer {
  const head = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([head, Buffer.from(text)]);
}

function read(bytes: Buffer, pieceBytes: number): { stdout: string; stderr: string } {
  const said = { stdout: '', stderr: '' };
  const reader = new FrameReader((stream, piece) => {
    said[stream] += Buffer.from(piece).toString();
  });
  for (let at = 0; at < bytes.byteLength; at += pieceBytes) reader.push(bytes.subarray(at, at + pieceBytes));
  return said;
}

describe('frames of a container engine', () => {
  it('are told apart, in whatever pieces they come', () => {
    const bytes = Buffer.concat([
      ...[frame(1, 'one'), frame(2, 'to stderr'), frame(1, ''), frame(1, ' two'), frame(2, '!')],
    ]);
    for (let piece = 1; piece <= bytes.byteLength; piece++) {
      expect(read(bytes, piece), `pieces of ${piece}`).to.eql({ stdout: 'one two', stderr: 'to stderr!' });
    }
  });

  it('are handed on before they are whole', () => {
    expect(read(frame(1, 'abc').subarray(0, 9), 9)).to.eql({ stdout: 'a', stderr: '' });
  });
});
