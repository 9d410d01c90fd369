// What `polar up` does about a NATS server that cannot write, by what it says of itself over time.
import { expect } from 'chai';
import { Recovery } from './full-disk.ts';

const LOOK_MS = 2_000;
const FAULT = 'write error: no space left on device';

describe('Recovery', () => {
  /** A look every two seconds; when it told, and when it restarted. */
  function watched(seconds: number, said: (ms: number, restarts: number) => string | undefined, room = true) {
    const recovery = new Recovery();
    const told: number[] = [];
    const restarted: number[] = [];
    for (let ms = 0; ms < seconds * 1_000; ms += LOOK_MS) {
      const { tell, restarts } = recovery.next(said(ms, restarted.length), room, ms);
      if (tell) told.push(ms);
      if (restarts) restarted.push(ms);
    }
    return { told, restarted };
  }

  it('tells once and leaves it alone while there is no room', () => {
    expect(watched(600, () => FAULT, false)).to.deep.equal({ told: [0], restarted: [] });
  });

  it('restarts ever less often what that does not help, and tells of it once', () => {
    const { told, restarted } = watched(300, () => FAULT);
    expect(told).to.deep.equal([0]);
    expect(restarted).to.deep.equal([0, 2, 6, 14, 30, 62, 122, 182, 242].map((s) => s * 1_000));
    // Well, or without an answer, for the moment after a restart.
    for (const first of ['', undefined]) {
      const flaps = watched(300, (ms) => ((ms / LOOK_MS) % 2 === 0 ? FAULT : first));
      expect(flaps.told).to.deep.equal([0]);
      expect(flaps.restarted).to.have.length.below(10);
    }
  });

  it('begins anew after a minute that it was well', () => {
    const at = new Set([0, 20_000, 300_000]);
    const { told, restarted } = watched(400, (ms) => (at.has(ms) ? FAULT : ''));
    expect(restarted).to.deep.equal([...at]);
    expect(told).to.deep.equal([0, 300_000]);
  });
});
