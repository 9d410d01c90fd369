import { expect } from 'chai';
import { type AnswerHead, AnswerReader } from './http-answer.ts';

interface Read {
  heads: AnswerHead[];
  bodies: string[];
  whole: number;
}

function read(pieces: readonly string[], closes = false): Read {
  const found: Read = { heads: [], bodies: [], whole: 0 };
  const reader = new AnswerReader({
    head: (head) => {
      found.heads.push(head);
      found.bodies.push('');
    },
    piece: (bytes) => {
      found.bodies[found.bodies.length - 1] += bytes.toString('latin1');
    },
    end: () => found.whole++,
  });
  for (const piece of pieces) reader.push(Buffer.from(piece, 'latin1'));
  if (closes) reader.close();
  return found;
}

const head = (fields: string, status = '200 OK'): string => `HTTP/1.1 ${status}\r\n${fields}\r\n`;
const WHOLE = `${head('Content-Type: application/json\r\nContent-Length: 5\r\n')}hello`;
const CHUNKED = `${head('transfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n')}4;a=b\r\nda\r\n\r\nB\r\n1234567890a\r\n0\r\nx: y\r\n\r\n`;
const EMPTY = head('connection: close\r\n', '204 No Content');

describe('HTTP answers', () => {
  it('are read in whatever pieces they come', () => {
    const text = `${head('', '100 Continue')}${WHOLE}${CHUNKED}${WHOLE}`;
    const whole = read([text]);
    expect(whole).to.deep.equal({
      heads: [
        { status: 200, contentType: 'application/json', keepAlive: true },
        { status: 200, contentType: 'text/event-stream', keepAlive: true },
        { status: 200, contentType: 'application/json', keepAlive: true },
      ],
      bodies: ['hello', 'da\r\n1234567890a', 'hello'],
      whole: 3,
    });
    expect(read([...text])).to.deep.equal(whole);
    for (let i = 1; i < text.length; i++)
      expect(read([text.slice(0, i), text.slice(i)])).to.deep.equal(whole);
  });

  it('say when to ask again, where they are errors and say so in seconds', () => {
    const waitOf = (field: string, status = '503 Busy'): number | undefined =>
      read([head(`${field}\r\ncontent-length: 0\r\n`, status)]).heads[0]?.retryAfterMs;
    expect(waitOf('Retry-After: 7')).to.equal(7_000);
    expect(waitOf('retry-after: 20', '429 Slow')).to.equal(20_000);
    expect(waitOf('retry-after: 0')).to.equal(undefined);
    expect(waitOf('retry-after: Fri, 31 Dec 1999 23:59:59 GMT')).to.equal(undefined);
    expect(waitOf('retry-after: -1')).to.equal(undefined);
    expect(waitOf('retry-after: 7', '200 OK')).to.equal(undefined);
  });

  it('end with the connection where they tell no length', () => {
    const text = `${head('content-type: text/plain\r\n')}until the end`;
    expect(read([text]).whole).to.equal(0);
    const { whole, bodies, heads } = read([text], true);
    expect({ whole, bodies, keepAlive: heads[0]?.keepAlive }).to.deep.equal({
      whole: 1,
      bodies: ['until the end'],
      keepAlive: false,
    });
  });

  it('tell whether the connection stays', () => {
    const stays = (text: string): boolean | undefined => read([text]).heads[0]?.keepAlive;
    expect(stays(EMPTY)).to.equal(false);
    expect(stays(head('content-length: 0\r\n'))).to.equal(true);
    expect(stays('HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n')).to.equal(false);
    expect(stays('HTTP/1.0 200 OK\r\ncontent-length: 0\r\nConnection: Keep-Alive\r\n\r\n')).to.equal(true);
    expect(read([EMPTY]).whole).to.equal(1);
  });

  it('are refused where they are cut or are no HTTP', () => {
    for (const text of [WHOLE.slice(0, -1), CHUNKED.slice(0, -2), head('').slice(0, -2), '']) {
      expect(() => read([text], true), text).to.throw('closed');
    }
    const faults = [
      'SSH-2.0-x\r\n\r\n',
      'HTTP/2 200\r\n\r\n',
      head('content-length: many\r\n'),
      `${head('transfer-encoding: chunked\r\n')}x\r\n`,
      'H'.repeat(70_000),
    ];
    for (const text of faults) expect(() => read([text]), text.slice(0, 40)).to.throw(Error);
  });
});
