import { expect } from 'chai';
import { DispatchQueue, type QueueItem } from './queue.ts';

const item = (sessionId: string, over: Partial<QueueItem> = {}): QueueItem => ({
  sessionId,
  taskId: 'task',
  sampleIndex: 0,
  priority: 0,
  order: 0,
  need: '/',
  notBeforeMs: 0,
  ...over,
});

const any = (): boolean => true;

describe('dispatch queue', () => {
  it('goes by priority, then by task, then by sample', () => {
    const queue = new DispatchQueue();
    queue.push(item('late-task', { order: 2 }));
    queue.push(item('second', { order: 1, sampleIndex: 1 }));
    queue.push(item('first', { order: 1, sampleIndex: 0 }));
    queue.push(item('urgent', { order: 3, priority: 5 }));
    const taken = [1, 2, 3, 4].map(() => queue.take(0, any)?.sessionId);
    expect(taken).to.deep.equal(['urgent', 'first', 'second', 'late-task']);
    expect(queue.take(0, any)).to.equal(undefined);
    expect(queue.size).to.equal(0);
  });

  it('holds a session back until its time, and lets others pass', () => {
    const queue = new DispatchQueue();
    queue.push(item('backing-off', { priority: 9, notBeforeMs: 100 }));
    queue.push(item('other'));
    expect(queue.take(99, any)?.sessionId).to.equal('other');
    expect(queue.take(99, any)).to.equal(undefined);
    expect(queue.take(100, any)?.sessionId).to.equal('backing-off');
  });

  it('passes over what no node can take', () => {
    const queue = new DispatchQueue();
    queue.push(item('rare', { priority: 9, need: 'bubblewrap/rare' }));
    queue.push(item('common'));
    expect(queue.take(0, (need) => need === '/')?.sessionId).to.equal('common');
    expect(queue.take(0, (need) => need === '/')).to.equal(undefined);
    expect(queue.take(0, any)?.sessionId).to.equal('rare');
  });

  it('forgets dropped sessions, many of them too', () => {
    const queue = new DispatchQueue();
    for (let i = 0; i < 5_000; i++) queue.push(item(`s${i}`, { sampleIndex: i }));
    for (let i = 0; i < 4_999; i++) queue.drop(`s${i}`);
    expect(queue.size).to.equal(1);
    expect(queue.take(0, any)?.sessionId).to.equal('s4999');
    expect(queue.take(0, any)).to.equal(undefined);
  });

  it('holds a session once', () => {
    const queue = new DispatchQueue();
    queue.push(item('a', { priority: 1 }));
    queue.push(item('a', { priority: 0 }));
    expect(queue.take(0, any)?.priority).to.equal(0);
    expect(queue.take(0, any)).to.equal(undefined);
  });

  it('agrees with sorting, for random items', () => {
    let seed = 7;
    const random = (n: number): number => {
      seed = (seed * 1_664_525 + 1_013_904_223) >>> 0;
      return seed % n;
    };
    const queue = new DispatchQueue();
    const items = Array.from({ length: 500 }, (_, i) =>
      item(`s${i}`, { priority: random(4), order: random(20), sampleIndex: i, need: String(random(3)) }),
    );
    for (const one of items) queue.push(one);
    const sorted = items
      .toSorted((a, b) => b.priority - a.priority || a.order - b.order || a.sampleIndex - b.sampleIndex)
      .map((one) => one.sessionId);
    expect(items.map(() => queue.take(0, any)?.sessionId)).to.deep.equal(sorted);
  });
});
