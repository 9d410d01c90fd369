// Fair share in simulated time: slots, queues that always have work, run times of several kinds.
import { expect } from 'chai';
import { Heap } from './heap.ts';
import { DispatchQueue, type QueueItem } from './queue.ts';
import { type QueueRule, Shares } from './shares.ts';

interface Load extends QueueRule {
  /** Run time of its next session. */
  readonly seconds: () => number;
}

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

class Simulation {
  readonly queue: DispatchQueue;
  nowSeconds = 0;
  readonly started: string[] = [];
  readonly #loads: Map<string, Load>;
  readonly #slots: number;
  readonly #ends = new Heap<{ at: number; id: string; name: string; seconds: number }>((a, b) => a.at < b.at);
  #ids = 0;

  fits: (item: QueueItem) => boolean = () => true;

  constructor(slots: number, loads: readonly Load[], from = loads.map(({ name }) => name)) {
    this.#slots = slots;
    this.#loads = new Map(loads.map((load) => [load.name, load]));
    this.queue = new DispatchQueue(new Shares(loads));
    for (const name of from) this.arrive(name, 2 * slots);
  }

  arrive(name: string, count: number, rank = 0): void {
    for (let i = 0; i < count; i++) {
      const order = this.#ids++;
      const sessionId = `${name}-${order}`;
      const own = { sampleIndex: 0, taskCap: 0, need: '/', lostOn: [], notBeforeMs: 0 };
      this.queue.push({ sessionId, taskId: sessionId, queue: name, rank, order, ...own });
    }
  }

  /** Each start brings another session to its queue, so that none runs dry. */
  run(untilSeconds: number): void {
    for (;;) {
      this.#fill();
      const next = this.#ends.top;
      if (next === undefined || next.at > untilSeconds) return;
      this.#ends.pop();
      this.nowSeconds = next.at;
      this.queue.ended(next.id, next.seconds);
    }
  }

  #fill(): void {
    while (this.#ends.size < this.#slots) {
      const taken = this.queue.take(0, this.fits);
      if (taken === undefined) return;
      this.queue.started(taken.sessionId, taken);
      this.started.push(taken.sessionId);
      const seconds = this.#loads.get(taken.queue)?.seconds() ?? 1;
      this.#ends.push({ at: this.nowSeconds + seconds, id: taken.sessionId, name: taken.queue, seconds });
      this.arrive(taken.queue, 1);
    }
  }
}

const load = (name: string, weight: number, seconds: () => number, maxRunning = 0): Load => ({
  name,
  weight,
  maxRunning,
  seconds,
});
const ratio = ({ queue }: Simulation, a: string, b: string): number =>
  queue.shares.of(a).runSeconds / queue.shares.of(b).runSeconds;

describe('fair share', () => {
  for (const slots of [1, 2, 16]) {
    it(`is by weight in run time, on ${slots} slots, with jobs of like lengths`, () => {
      const next = random(slots);
      const simulation = new Simulation(slots, [
        load('heavy', 3, () => 5 + 10 * next()),
        load('light', 1, () => 5 + 10 * next()),
      ]);
      simulation.run(2_000);
      expect(ratio(simulation, 'heavy', 'light')).to.be.within(3 * 0.95, 3 * 1.05);
    });
  }

  it('is by run time and not by count, where one queue has short jobs and the other long ones', () => {
    const simulation = new Simulation(4, [load('short', 1, () => 1), load('long', 1, () => 30)]);
    simulation.run(20_000);
    expect(ratio(simulation, 'short', 'long')).to.be.within(0.95, 1.05);
  });

  it('gives a light queue its hundredth: nothing starves', () => {
    const simulation = new Simulation(4, [load('heavy', 99, () => 10), load('light', 1, () => 10)]);
    simulation.run(40_000);
    expect(ratio(simulation, 'heavy', 'light')).to.be.within(99 * 0.9, 99 * 1.1);
  });

  it('starts a late urgent session next', () => {
    const simulation = new Simulation(2, [load('only', 1, () => 10)]);
    simulation.run(100);
    const begun = simulation.started.length;
    simulation.arrive('only', 1, -1);
    simulation.run(120);
    expect(simulation.started[begun]).to.equal(`only-${begun + 4}`);
  });

  it('gives no credit for having been idle', () => {
    const simulation = new Simulation(2, [load('busy', 1, () => 1)]);
    simulation.run(1_000);
    const begun = simulation.started.length;
    simulation.arrive('idle', 300);
    simulation.run(1_100);
    const later = simulation.started.slice(begun, begun + 100);
    expect(later.filter((id) => id.startsWith('idle'))).to.have.length.within(45, 55);
  });

  it('gives no credit to a queue of a rule for having had nothing to run', () => {
    const simulation = new Simulation(2, [load('idle', 1, () => 1), load('busy', 1, () => 1)], ['busy']);
    simulation.run(1_000);
    const begun = simulation.started.length;
    simulation.arrive('idle', 2);
    simulation.run(1_100);
    const later = simulation.started.slice(begun, begun + 100);
    expect(later.filter((id) => id.startsWith('idle'))).to.have.length.within(45, 55);
  });

  it('gives a bounded credit to a queue that no free node fits', () => {
    const simulation = new Simulation(1, [load('rare', 2, () => 100), load('busy', 1, () => 100)]);
    simulation.fits = ({ queue }) => queue === 'busy';
    simulation.run(10_000);
    const begun = simulation.started.length;
    simulation.fits = () => true;
    simulation.run(16_000);
    const later = simulation.started.slice(begun, begun + 48);
    // An hour of run time, and two thirds of what comes after it.
    expect(later.filter((id) => id.startsWith('rare'))).to.have.length.within(42, 46);
  });

  it('charges what a run took, not what it was thought to take, and nothing for one that never began', () => {
    const simulation = new Simulation(1, [load('long', 1, () => 40), load('short', 1, () => 10)]);
    simulation.run(79);
    const names = simulation.started.map((id) => id.split('-')[0]);
    expect(names).to.deep.equal(['long', 'short', 'short', 'short', 'short']);
    const shares = new Shares([{ name: 'a', weight: 1, maxRunning: 0 }]);
    shares.wait('a');
    shares.start('s', 'a');
    shares.end('s', undefined);
    expect(shares.of('a')).to.include({ tag: 0, runs: 0, meanSeconds: 1 });
  });

  it('gives no credit to a queue of no rule for having been alone, one session at a time', () => {
    const queue = new DispatchQueue();
    let ids = 0;
    const arrive = (name: string): void => {
      const own = { sampleIndex: 0, rank: 0, taskCap: 0, need: '/', lostOn: [], notBeforeMs: 0 };
      queue.push({ sessionId: `${name}-${ids}`, taskId: `${ids}`, queue: name, order: ids++, ...own });
    };
    const start = (): string => {
      const taken = queue.take(0, () => true);
      if (taken !== undefined) queue.started(taken.sessionId, taken);
      return taken?.sessionId ?? '';
    };
    for (let i = 0; i < 10; i++) {
      arrive('alone');
      queue.ended(start(), 1_000);
    }
    arrive('alone');
    const running = start();
    for (const name of ['alone', 'other']) for (let i = 0; i < 20; i++) arrive(name);
    queue.ended(running, 10);
    const started = Array.from({ length: 20 }, () => {
      const id = start();
      queue.ended(id, 10);
      return id;
    });
    expect(started.filter((id) => id.startsWith('other'))).to.have.length.within(8, 12);
  });

  it('keeps a queue at its cap and gives the others the rest', () => {
    const simulation = new Simulation(8, [load('capped', 10, () => 1, 2), load('free', 1, () => 1)]);
    simulation.run(1_000);
    expect(ratio(simulation, 'free', 'capped')).to.be.within(2.9, 3.1);
  });

  it('forgets a queue of no rule when it is idle and owes nothing, and keeps those of rules', () => {
    const shares = new Shares([{ name: 'ruled', weight: 2, maxRunning: 0 }]);
    const names = (): string[] => shares.all.map(({ name }) => name);
    shares.start('a', 'ruled');
    shares.start('b', 'own');
    shares.end('b', 100);
    expect(names()).to.deep.equal(['own', 'ruled']);
    shares.wait('waits');
    shares.start('c', 'ruled');
    shares.end('c', 1);
    expect(names(), 'what owes or has something that waits').to.deep.equal(['own', 'ruled', 'waits']);
    shares.leave('waits');
    shares.end('a', 1);
    expect(names()).to.deep.equal(['ruled']);
  });

  it('goes on from what queues have used before', () => {
    const used = { runMs: 120_000, runs: 4 };
    const shares = new Shares([{ name: 'ruled', weight: 2, maxRunning: 0 }], (queue) =>
      queue === 'new' ? { runMs: 0, runs: 0 } : used,
    );
    expect(shares.of('ruled')).to.include({ runSeconds: 120, runs: 4, meanSeconds: 30, tag: 0 });
    expect(shares.of('own')).to.include({ runSeconds: 120, meanSeconds: 30 });
    expect(shares.of('new')).to.include({ runSeconds: 0, meanSeconds: 1 });
    shares.start('s', 'ruled');
    shares.end('s', 30);
    expect(shares.of('ruled')).to.include({ runSeconds: 150, runs: 5, meanSeconds: 30 });
  });

  it('charges a session once, whatever is told twice', () => {
    const shares = new Shares([{ name: 'a', weight: 1, maxRunning: 0 }]);
    shares.start('s', 'a');
    shares.start('s', 'a');
    expect(shares.of('a').running).to.equal(1);
    shares.end('s', 5);
    shares.end('s', 5);
    expect(shares.of('a')).to.include({ running: 0, runSeconds: 5 });
  });
});
