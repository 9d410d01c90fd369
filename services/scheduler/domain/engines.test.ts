import { expect } from 'chai';
import { ENGINE_LIMIT_STEP_MS, ENGINE_PRESSURE_OLD_MS } from '../../common/limits.ts';
import { Engines, nextLimit } from './engines.ts';
import type { NodeState } from './nodes.ts';

const setOf = (count: number): Set<string> => new Set(Array.from({ length: count }, (_, i) => String(i)));
const running = (count: number, open = 0): NodeState =>
  ({ running: setOf(count), open: setOf(open) }) as unknown as NodeState;

describe('caps of engines', () => {
  const engines = new Engines([
    { nodeId: 'a', servers: ['http://x', 'http://y'], maxSessions: 4, minSessions: undefined },
    { nodeId: 'b', servers: ['http://y', 'http://x'], maxSessions: undefined, minSessions: undefined },
    { nodeId: 'c', servers: ['http://x'], maxSessions: undefined, minSessions: undefined },
  ]);

  it('are shared by nodes that name the same servers, whoever sets them', () => {
    const nodes = new Map([
      ['a', running(1)],
      ['b', running(2)],
      ['c', running(9)],
    ]);
    const full = (id: string) => engines.full(id, (one) => nodes.get(one));
    expect([full('a'), full('b'), full('c'), full('unknown')]).to.deep.equal(Array(4).fill(undefined));
    nodes.set('b', running(3));
    expect(full('a')?.name).to.equal('http://x, http://y');
    expect(full('b')?.maxSessions).to.equal(4);
    expect(full('c')).to.equal(undefined);
    nodes.set('b', running(2, 1));
    expect(full('a')?.name, 'what runs elsewhere calls it, too').to.equal('http://x, http://y');
  });

  it('count nodes that are not there as empty', () => {
    expect(engines.full('a', () => undefined)).to.equal(undefined);
  });
});

describe('what an engine bears', () => {
  const bounds = { minSessions: 2, maxSessions: 16 };
  const calm = { callsWaiting: 0, cacheUse: 0.5 };
  const pressed = { callsWaiting: 8, cacheUse: 0.5 };
  const next = (limit: number, sessions: number, pressure: typeof calm): number =>
    nextLimit({ ...bounds, limit }, sessions, pressure);

  it('rises by one while it is used and the engine keeps up', () => {
    expect(next(8, 8, calm)).to.equal(9);
    expect(next(16, 16, calm)).to.equal(16);
    expect(next(8, 7, calm)).to.equal(8);
    expect(next(8, 8, { callsWaiting: 0, cacheUse: 0.94 })).to.equal(9);
  });

  it('falls by a part when calls queue or the cache is full, to its lower bound', () => {
    expect(next(16, 16, pressed)).to.equal(12);
    expect(next(16, 16, { callsWaiting: 0, cacheUse: 0.95 })).to.equal(12);
    expect(next(3, 3, pressed)).to.equal(2);
    expect(next(2, 2, pressed)).to.equal(2);
  });

  it('waits with the next fall until what runs has come down to the last one', () => {
    expect(next(12, 16, pressed)).to.equal(12);
    expect(next(12, 12, pressed)).to.equal(9);
  });

  it('takes a call that queues for a moment for no pressure', () => {
    expect(next(16, 16, { callsWaiting: 1, cacheUse: 0 })).to.equal(16);
    expect(next(4, 4, { callsWaiting: 1, cacheUse: 0 })).to.equal(3);
  });

  it('changes once in a step, by the worst of what is told lately, where the bounds differ', () => {
    const rule = (nodeId: string) => ({ nodeId, servers: ['http://x'], ...bounds });
    const fixed = { nodeId: 'c', servers: ['http://y'], maxSessions: 4, minSessions: undefined };
    const engines = new Engines([rule('a'), rule('b'), fixed]);
    const nodeOf = (): NodeState => running(8);
    const told = (nodeId: string, pressure: typeof calm, nowMs: number): number | undefined =>
      engines.told(nodeId, pressure, nowMs, nodeOf)?.limit;
    expect(told('a', pressed, 0)).to.equal(12);
    expect(told('b', calm, 1)).to.equal(undefined);
    expect(engines.full('b', nodeOf)?.limit).to.equal(12);
    // What node a said is still fresh, and 16 run.
    expect(told('b', calm, ENGINE_LIMIT_STEP_MS)).to.equal(undefined);
    expect(told('b', calm, ENGINE_LIMIT_STEP_MS + ENGINE_PRESSURE_OLD_MS)).to.equal(13);
    expect(told('c', pressed, 0)).to.equal(undefined);
    const one = new Engines([rule('a')]);
    const full = { callsWaiting: 0, cacheUse: 0.95 };
    const limits = [0, 1, ENGINE_LIMIT_STEP_MS].map(
      (nowMs, i) => one.told('a', full, nowMs, () => running(i === 0 ? 16 : 12))?.limit,
    );
    expect(limits).to.deep.equal([12, undefined, 9]);
    expect(told('unknown', pressed, 0)).to.equal(undefined);
  });
});
