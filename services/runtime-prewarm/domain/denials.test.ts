import { expect } from 'chai';
import { DENIED_TARGETS_MAX } from '../../common/limits.ts';
import { Denials, deniedText } from './denials.ts';

describe('denials', () => {
  it('count all, and keep the first by name, each once', () => {
    const denials = new Denials();
    for (let i = 0; i < 30; i++) denials.add({ count: 1, targets: [`host-${i}:443`] });
    denials.add({ count: 2, targets: ['host-1:443'] });
    expect(denials.count).to.equal(32);
    expect(denials.targets).to.have.length(DENIED_TARGETS_MAX);
    expect(denials.targets[0]).to.equal('host-0:443');
  });

  it('bound what others choose', () => {
    const denials = new Denials();
    denials.add({ count: 1, targets: ['x'.repeat(10_000)] });
    expect(denials.targets[0]).to.have.length(262);
  });

  it('end a sentence', () => {
    expect(deniedText({ count: 0, targets: [] })).to.equal('');
    expect(deniedText({ count: 2, targets: ['a:1'] })).to.equal(', 2 connection(s) denied (a:1)');
  });
});
