import { expect } from 'chai';
import { PRIORITY_AGE_STEP_MS } from '../../common/limits.ts';
import { DispatchQueue, goesBefore, type QueueItem, rankOf } from './queue.ts';
import { Shares } from './shares.ts';

const item = (sessionId: string, over: Partial<QueueItem> = {}): QueueItem => ({
  sessionId,
  taskId: 'task',
  sampleIndex: 0,
  queue: 'default',
  rank: 0,
  order: 0,
  taskCap: 0,
  need: '/',
  lostOn: [],
  notBeforeMs: 0,
  ...over,
});

const any: (item: QueueItem) => boolean = () => true;

/** Takes the next one and starts it, as a dispatch does. */
function start(queue: DispatchQueue, fits = any): string | undefined {
  const taken = queue.take(0, fits);
  if (taken !== undefined) queue.started(taken.sessionId, taken);
  return taken?.sessionId;
}

describe('dispatch queue', () => {
  it('goes by rank, then by task, then by sample', () => {
    const queue = new DispatchQueue();
    queue.push(item('late-task', { order: 2 }));
    queue.push(item('second', { order: 1, sampleIndex: 1 }));
    queue.push(item('first', { order: 1, sampleIndex: 0 }));
    queue.push(item('urgent', { order: 3, rank: rankOf(0, 5) }));
    const taken = [1, 2, 3, 4].map(() => queue.take(0, any)?.sessionId);
    expect(taken).to.deep.equal(['urgent', 'first', 'second', 'late-task']);
    expect(queue.take(0, any)).to.equal(undefined);
    expect(queue.size).to.equal(0);
  });

  it('lets an urgent task pass what came before it, but not what has waited for long', () => {
    const queue = new DispatchQueue();
    const now = 100 * PRIORITY_AGE_STEP_MS;
    queue.push(item('old', { rank: rankOf(now - 11 * PRIORITY_AGE_STEP_MS, 0) }));
    queue.push(item('young', { rank: rankOf(now - 9 * PRIORITY_AGE_STEP_MS, 0) }));
    queue.push(item('urgent', { rank: rankOf(now, 10) }));
    expect([1, 2, 3].map(() => queue.take(0, any)?.sessionId)).to.deep.equal(['old', 'urgent', 'young']);
  });

  it('holds a session back until its time, and lets others pass', () => {
    const queue = new DispatchQueue();
    queue.push(item('backing-off', { rank: -9, notBeforeMs: 100 }));
    queue.push(item('other'));
    expect(queue.take(99, any)?.sessionId).to.equal('other');
    expect(queue.take(99, any)).to.equal(undefined);
    expect(queue.take(100, any)?.sessionId).to.equal('backing-off');
  });

  it('holds none back for hours, whose clock was ahead', () => {
    const queue = new DispatchQueue();
    queue.push(item('of-then', { notBeforeMs: 9 * 3_600_000 }));
    expect(queue.take(0, any)?.sessionId).to.equal('of-then');
  });

  it('passes over what no node can take', () => {
    const queue = new DispatchQueue();
    queue.push(item('rare', { rank: -9, need: 'bubblewrap/rare' }));
    queue.push(item('common'));
    expect(queue.take(0, ({ need }) => need === '/')?.sessionId).to.equal('common');
    expect(queue.take(0, ({ need }) => need === '/')).to.equal(undefined);
    expect(queue.take(0, any)?.sessionId).to.equal('rare');
  });

  it('passes over what a node may not take, and asks once for all of one kind', () => {
    const queue = new DispatchQueue();
    for (let i = 0; i < 5_000; i++) queue.push(item(`lost${i}`, { sampleIndex: i, lostOn: ['a'] }));
    queue.push(item('new', { order: 1 }));
    let asked = 0;
    const on =
      (node: string) =>
      ({ lostOn }: QueueItem): boolean => {
        asked++;
        return !lostOn.includes(node);
      };
    expect(queue.take(0, on('a'))?.sessionId).to.equal('new');
    expect(queue.take(0, on('a'))).to.equal(undefined);
    expect(queue.take(0, on('b'))?.sessionId).to.equal('lost0');
    expect(asked).to.be.at.most(4);
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
    queue.push(item('a', { rank: 1 }));
    queue.push(item('a', { rank: 0 }));
    expect(queue.take(0, any)?.rank).to.equal(0);
    expect(queue.take(0, any)).to.equal(undefined);
    expect(queue.shares.of('default').waiting).to.equal(0);
  });

  it('agrees with sorting, for random items', () => {
    let seed = 7;
    const random = (n: number): number => {
      seed = (seed * 1_664_525 + 1_013_904_223) >>> 0;
      return seed % n;
    };
    const queue = new DispatchQueue();
    const items = Array.from({ length: 500 }, (_, i) =>
      item(`s${i}`, { rank: random(4), order: random(20), sampleIndex: i, need: String(random(3)) }),
    );
    for (const one of items) queue.push(one);
    const sorted = items
      .toSorted((a, b) => a.rank - b.rank || a.order - b.order || a.sampleIndex - b.sampleIndex)
      .map((one) => one.sessionId);
    expect(items.map(() => queue.take(0, any)?.sessionId)).to.deep.equal(sorted);
  });

  it('says how many go before one, of its own queue', () => {
    const queue = new DispatchQueue();
    for (let i = 0; i < 4; i++) queue.push(item(`s${i}`, { sampleIndex: i }));
    queue.push(item('elsewhere', { queue: 'other', rank: -1 }));
    const [first, last, elsewhere] = ['s0', 's3', 'elsewhere'].map((id) => queue.get(id) as QueueItem);
    expect([...queue.ahead([last, elsewhere, first] as QueueItem[])]).to.have.deep.members([
      ['s3', 3],
      ['elsewhere', 0],
      ['s0', 0],
    ]);
    expect(queue.ahead([])).to.deep.equal(new Map());
  });

  it('says it of many as of each alone, for random items', () => {
    let seed = 11;
    const random = (n: number): number => {
      seed = (seed * 1_664_525 + 1_013_904_223) >>> 0;
      return (seed >>> 8) % n;
    };
    const items = Array.from({ length: 300 }, (_, i) =>
      item(`s${i}`, { rank: random(4), order: random(9), sampleIndex: i, need: String(random(3)) }),
    );
    const queue = new DispatchQueue();
    for (const one of items) queue.push(one);
    const asked = items.filter(() => random(3) === 0);
    const told = queue.ahead(asked);
    for (const one of asked) {
      const ahead = items.filter((other) => other.need === one.need && goesBefore(other, one)).length;
      expect(told.get(one.sessionId), one.sessionId).to.equal(ahead);
    }
  });
});

describe('caps', () => {
  it('of a task hold its other sessions back, and nobody else', () => {
    const queue = new DispatchQueue();
    for (let i = 0; i < 4; i++) queue.push(item(`s${i}`, { sampleIndex: i, taskCap: 2 }));
    queue.push(item('other', { taskId: 'other', order: 1 }));
    expect([start(queue), start(queue), start(queue), start(queue)]).to.deep.equal([
      's0',
      's1',
      'other',
      undefined,
    ]);
    queue.ended('s1', 1);
    expect([start(queue), start(queue)]).to.deep.equal(['s2', undefined]);
    queue.ended('s0', 1);
    expect([start(queue), start(queue)]).to.deep.equal(['s3', undefined]);
    // One that goes again counts again.
    queue.ended('s2', undefined);
    for (const id of ['s2', 's4']) queue.push(item(id, { taskCap: 2 }));
    expect([start(queue), start(queue)]).to.deep.equal(['s2', undefined]);
  });

  it('of a task let another go where the one that was next is dropped', () => {
    const queue = new DispatchQueue();
    for (let i = 0; i < 4; i++) queue.push(item(`s${i}`, { sampleIndex: i, taskCap: 1 }));
    expect([start(queue), start(queue)]).to.deep.equal(['s0', undefined]);
    queue.drop('s2');
    queue.ended('s0', undefined);
    queue.drop('s1');
    expect([start(queue), start(queue)]).to.deep.equal(['s3', undefined]);
    expect(queue.running('task')).to.equal(1);
  });

  it('of a task let the session go that a node fits, where the first one waits for another', () => {
    const queue = new DispatchQueue();
    queue.push(item('lost-on-b', { taskCap: 1, lostOn: ['b'] }));
    for (let i = 1; i < 5; i++) queue.push(item(`s${i}`, { sampleIndex: i, taskCap: 1 }));
    const onB = ({ lostOn }: QueueItem): boolean => !lostOn.includes('b');
    const ran: (string | undefined)[] = [];
    for (let i = 0; i < 4; i++) {
      ran.push(start(queue, onB));
      expect(start(queue, onB)).to.equal(undefined);
      queue.ended(ran[i] ?? '', 1);
    }
    expect(ran).to.deep.equal(['s1', 's2', 's3', 's4']);
    expect([start(queue, onB), start(queue)]).to.deep.equal([undefined, 'lost-on-b']);
  });

  it('of tasks agree with a look at all that wait, for random items, nodes and ends', () => {
    let seed = 5;
    const random = (n: number): number => {
      seed = (seed * 1_664_525 + 1_013_904_223) >>> 0;
      return (seed >>> 8) % n;
    };
    const queue = new DispatchQueue();
    const waiting = new Map<string, QueueItem>();
    const running = new Map<string, QueueItem>();
    const runningOf = ({ taskId }: QueueItem): number =>
      [...running.values()].filter((one) => one.taskId === taskId).length;
    const nodes = ['a', 'b', 'c'];
    for (let i = 0; i < 4_000; i++) {
      const node = nodes[random(3)] ?? '';
      const fits = ({ lostOn }: QueueItem): boolean => !lostOn.includes(node);
      const step = random(8);
      if (step < 2) {
        const task = random(4);
        const lostOn = nodes.filter(() => random(3) === 0);
        const over = {
          taskId: `t${task}`,
          order: task,
          taskCap: task,
          sampleIndex: i,
          rank: random(3),
          lostOn,
        };
        waiting.set(`s${i}`, item(`s${i}`, over));
        queue.push(item(`s${i}`, over));
      } else if (step < 5) {
        const free = (one: QueueItem): boolean => one.taskCap === 0 || runningOf(one) < one.taskCap;
        const [first] = [...waiting.values()]
          .filter((one) => fits(one) && free(one))
          .sort((a, b) => (goesBefore(a, b) ? -1 : 1));
        const id = start(queue, fits);
        expect(id, `step ${i}`).to.equal(first?.sessionId);
        if (first !== undefined) running.set(first.sessionId, first);
        waiting.delete(id ?? '');
      } else {
        const of = step === 7 ? waiting : running;
        const id = [...of.keys()][random(of.size)] ?? '';
        of.delete(id);
        if (step === 7) queue.drop(id);
        else queue.ended(id, 1);
      }
    }
    expect(queue.size).to.equal(waiting.size);
  });

  it('of a queue hold it back, and no other', () => {
    const queue = new DispatchQueue(new Shares([{ name: 'small', weight: 1, maxRunning: 1 }]));
    for (let i = 0; i < 3; i++) queue.push(item(`s${i}`, { sampleIndex: i, queue: 'small' }));
    queue.push(item('other', { order: 1 }));
    expect([start(queue), start(queue), start(queue)]).to.deep.equal(['s0', 'other', undefined]);
    queue.ended('s0', 1);
    expect([start(queue), start(queue)]).to.deep.equal(['s1', undefined]);
  });
});
