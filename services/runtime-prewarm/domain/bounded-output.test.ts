import { expect } from 'chai';
import { BoundedOutput } from './bounded-output.ts';

const TEXT = 'abcdefghijklmnopqrstuvwxyz';

/** What is handed on of a text in pieces of that size, at once and at the end, and how much is not. */
function kept(
  text: string,
  bytesMax: number,
  pieceBytes: number,
): [now: string, later: string, dropped: number] {
  const said: string[] = [];
  const output = new BoundedOutput((stream, bytes) => {
    if (stream === 'stdout') said.push(Buffer.from(bytes).toString());
  }, bytesMax);
  for (let at = 0; at < text.length; at += pieceBytes) {
    output.take('stdout', Buffer.from(text.slice(at, at + pieceBytes)));
  }
  output.take('stderr', Buffer.from('err'));
  const now = said.splice(0).join('');
  output.end();
  return [now, said.join(''), output.droppedBytes];
}

describe('bounded output', () => {
  for (const pieceBytes of [1, 3, 5, 7, 26]) {
    it(`has the first and the last of each stream, in pieces of ${pieceBytes}`, () => {
      expect(kept(TEXT, 100, pieceBytes)).to.eql([TEXT, '', 0]);
      expect(kept(TEXT, 26, pieceBytes)).to.eql([TEXT.slice(0, 13), TEXT.slice(13), 0]);
      expect(kept(TEXT, 10, pieceBytes)).to.eql(['abcde', 'vwxyz', 16]);
      expect(kept(TEXT, 7, pieceBytes)).to.eql(['abcd', 'xyz', 19]);
    });
  }

  it('hands on nothing behind a gap of which nobody is told', () => {
    const said = { stdout: '', stderr: '' };
    const output = new BoundedOutput((stream, bytes) => {
      said[stream] += Buffer.from(bytes).toString();
    }, 10);
    output.take('stdout', Buffer.from(TEXT));
    output.take('stderr', Buffer.from(TEXT.slice(0, 10)));
    output.endUntold();
    expect(said).to.eql({ stdout: 'abcde', stderr: 'abcdefghij' });
    output.end();
    output.endUntold();
    expect(said).to.eql({ stdout: 'abcdevwxyz', stderr: 'abcdefghij' });
  });
});
