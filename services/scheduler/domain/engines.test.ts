import { expect } from 'chai';
import { Engines } from './engines.ts';
import type { NodeState } from './nodes.ts';

const running = (count: number): NodeState =>
  ({ running: new Set(Array.from({ length: count }, (_, i) => String(i))) }) as unknown as NodeState;

describe('caps of engines', () => {
  const engines = new Engines([
    { nodeId: 'a', servers: ['http://x', 'http://y'], maxSessions: 4 },
    { nodeId: 'b', servers: ['http://y', 'http://x'], maxSessions: undefined },
    { nodeId: 'c', servers: ['http://x'], maxSessions: undefined },
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
  });

  it('count nodes that are not there as empty', () => {
    expect(engines.full('a', () => undefined)).to.equal(undefined);
  });
});
