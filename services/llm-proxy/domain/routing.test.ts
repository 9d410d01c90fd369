import { expect } from 'chai';
import { STICKY_LOAD_SLACK } from '../../common/limits.ts';
import { type RoutedEngine, route } from './routing.ts';

interface Named extends RoutedEngine {
  readonly name: string;
}
const engine = (name: string, more: Partial<Named> = {}): Named => ({
  name,
  load: 0,
  loadMax: 8,
  sessions: 0,
  up: true,
  draining: false,
  ...more,
});
const chosen = (engines: Named[], home?: Named, failed: Named[] = []): string => {
  const found = route(engines, home, new Set(failed));
  return found.kind === 'engine' ? found.engine.name : found.kind;
};

describe('routing', () => {
  it('takes the least loaded, of equals the one with the fewest sessions, then the first', () => {
    expect(chosen([engine('a', { load: 2 }), engine('b', { load: 1 })])).to.equal('b');
    expect(chosen([engine('a', { sessions: 2 }), engine('b', { sessions: 1 })])).to.equal('b');
    expect(chosen([engine('a', { load: 1, sessions: 2 }), engine('b', { load: 2 })])).to.equal('a');
    expect(chosen([engine('a'), engine('b')])).to.equal('a');
  });

  it('stays with the session’s engine until that is overloaded', () => {
    const idle = engine('idle');
    const busy = engine('busy', { load: STICKY_LOAD_SLACK - 1 });
    expect(chosen([idle, busy], busy)).to.equal('busy');
    const overloaded = engine('over', { load: STICKY_LOAD_SLACK });
    expect(chosen([idle, overloaded], overloaded)).to.equal('idle');
    const close = engine('close', { load: STICKY_LOAD_SLACK });
    expect(chosen([engine('one', { load: 1 }), close], close)).to.equal('close');
    // Many more, but less than the factor.
    const [high, higher] = [
      engine('high', { load: 40, loadMax: 99 }),
      engine('higher', { load: 70, loadMax: 99 }),
    ];
    expect(chosen([high, higher], higher)).to.equal('higher');
  });

  it('leaves an engine that is full, draining, down or has failed the call', () => {
    const other = engine('other', { load: 1 });
    for (const home of [
      engine('full', { load: 8 }),
      engine('draining', { draining: true }),
      engine('down', { up: false }),
    ]) {
      expect(chosen([home, other], home)).to.equal('other');
    }
    // Near its bound: as loaded as the other, and full all the same.
    const [near, atBound] = [engine('near', { load: 7 }), engine('at-bound', { load: 8 })];
    expect(chosen([atBound, near], atBound)).to.equal('near');
    const failed = engine('failed');
    expect(chosen([failed, other], failed, [failed])).to.equal('other');
  });

  it('asks what failed or is down again where there is nothing else', () => {
    const [up, down] = [engine('up'), engine('down', { up: false })];
    expect(chosen([up, down], undefined, [up])).to.equal('up');
    expect(chosen([down])).to.equal('down');
    expect(chosen([down, engine('down2', { up: false })], undefined, [down])).to.equal('down2');
  });

  it('waits rather than ask one that is down, and tells where there is none at all', () => {
    expect(chosen([engine('at-bound', { load: 8 }), engine('down', { up: false })])).to.equal('full');
    expect(chosen([])).to.equal('none');
    expect(chosen([engine('draining', { draining: true })])).to.equal('none');
  });
});
