import { expect } from 'chai';
import { type Peer, Peers } from './peers.ts';

const peer = (bootId: string, revision: number, inFlight: number): Peer => ({
  nodeId: `node-${bootId}`,
  bootId,
  revision,
  inFlight,
  waiting: 0,
});
const ids = (peers: readonly Peer[]): string[] => peers.map(({ bootId }) => bootId);

describe('peers', () => {
  it('are behind until they go by the revision and, where it matters, have nothing in flight', () => {
    const peers = new Peers(100, 20);
    peers.hear(peer('a', 4, 0), 0);
    peers.hear(peer('b', 5, 2), 0);
    peers.hear(peer('c', 5, 0), 0);
    expect(ids(peers.behind(5, true, 10))).to.deep.equal(['a', 'b']);
    expect(ids(peers.behind(5, false, 10))).to.deep.equal(['a']);
    peers.hear(peer('a', 5, 0), 10);
    peers.hear(peer('b', 6, 0), 10);
    expect(peers.behind(5, true, 10)).to.deep.equal([]);
  });

  it('are gone when they say so, or nothing any more', () => {
    const peers = new Peers(100, 20);
    peers.hear(peer('a', 1, 1), 0);
    peers.hear(peer('b', 1, 1), 50);
    peers.forget('unknown');
    expect(ids(peers.alive(100))).to.deep.equal(['a', 'b']);
    expect(ids(peers.alive(101))).to.deep.equal(['b']);
    peers.forget('b');
    expect(peers.alive(101)).to.deep.equal([]);
  });

  it('are all known only after a round in which words came in without a gap', () => {
    const peers = new Peers(100, 20);
    expect(peers.complete(0)).to.equal(false);
    for (const now of [0, 10, 19]) peers.hearSelf(now);
    expect(peers.complete(19)).to.equal(false);
    expect(peers.complete(20)).to.equal(true);
    expect(peers.complete(40), 'nothing comes in any more').to.equal(false);
    peers.hearSelf(50);
    expect(peers.complete(60), 'after a gap').to.equal(false);
    peers.hearSelf(70);
    expect(peers.complete(70)).to.equal(true);
  });
});
