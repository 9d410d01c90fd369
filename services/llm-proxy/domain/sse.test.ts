import { expect } from 'chai';
import { EventDecoder, eventOf, lineOf } from './sse.ts';

const STREAM =
  ': comment\n\ndata: {"a":"ä\u{1F914}"}\r\n\r\nevent: x\ndata: one\ndata: two\n\ndata:[DONE]\n\n';
const EVENTS = ['{"a":"ä\u{1F914}"}', 'one\ntwo', '[DONE]'];

describe('server-sent events', () => {
  it('are the same in whatever pieces the bytes come', () => {
    const bytes = Buffer.from(STREAM);
    for (let size = 1; size <= bytes.length; size++) {
      const decoder = new EventDecoder();
      const events: string[] = [];
      for (let at = 0; at < bytes.length; at += size)
        events.push(...decoder.push(bytes.subarray(at, at + size)));
      expect(events).to.deep.equal(EVENTS);
    }
  });

  it('do not count before they are whole', () => {
    const decoder = new EventDecoder();
    expect(decoder.push(Buffer.from('data: {"a":1}\n'))).to.deep.equal([]);
    expect(decoder.push(Buffer.from('\n'))).to.deep.equal(['{"a":1}']);
  });

  it('are read one by one as all at once', () => {
    const parts = [
      'data: {"a":"ä"}\n\n',
      'data: x\r\n\r\n',
      'data: \n\n',
      'data:y\n\n',
      'data: two\ndata: lines\n\n',
      'event: z\n\n',
      'data: half\n',
      'data: and half\n\n',
      'data: cut',
      ' here\n\n',
      'data: one\n\ndata: more\n\n',
      'data: last\n\n',
    ];
    const decoder = new EventDecoder();
    const events = parts.flatMap((part) => decoder.push(Buffer.from(part)));
    expect(events).to.deep.equal(new EventDecoder().push(Buffer.from(parts.join(''))));
    expect(events).to.include.members(['{"a":"ä"}', 'two\nlines', 'half\nand half', 'cut here', 'last']);
  });

  it('are read as they were written', () => {
    expect(new EventDecoder().push(Buffer.from(eventOf('{"x":"\\n"}')))).to.deep.equal(['{"x":"\\n"}']);
  });

  it('hold nothing that a client takes for the end of a line', () => {
    const value = { text: 'a\u2028b\u2029c\u0085d\ne' };
    const line = lineOf(value);
    expect(line).to.equal('{"text":"a\\u2028b\\u2029c\\u0085d\\ne"}');
    expect(JSON.parse(line)).to.deep.equal(value);
  });
});
