import { expect } from 'chai';
import { outputQueue } from './output-queue.ts';

describe('output queue', () => {
  it('joins small pieces that wait, streams and order kept', async () => {
    const queue = outputQueue();
    const text = Array.from({ length: 40_000 }, (_, i) => String(i % 10)).join('');
    for (const character of text) queue.push('stdout', Buffer.from(character));
    queue.push('stderr', Buffer.from('a'));
    queue.push('stderr', Buffer.alloc(100_000, 'b'));
    queue.push('stdout', Buffer.from('end'));
    queue.close();
    const pieces = await Array.fromAsync(queue.items);
    const of = (stream: string): string =>
      pieces
        .filter((one) => one.stream === stream)
        .map(({ bytes }) => Buffer.from(bytes).toString())
        .join('');
    expect(of('stdout')).to.equal(`${text}end`);
    expect(of('stderr')).to.equal(`a${'b'.repeat(100_000)}`);
    expect(pieces.map(({ bytes }) => bytes.length)).to.eql([16_384, 16_384, 7_232, 1, 100_000, 3]);
  });

  it('keeps what was handed on already', async () => {
    const queue = outputQueue();
    queue.push('stdout', Buffer.from('one'));
    const items = queue.items[Symbol.asyncIterator]();
    const { value: first } = await items.next();
    queue.push('stdout', Buffer.from('two'));
    queue.push('stdout', Buffer.from('three'));
    const { value: second } = await items.next();
    expect([first, second].map(({ bytes }) => Buffer.from(bytes).toString())).to.eql(['one', 'twothree']);
  });
});
