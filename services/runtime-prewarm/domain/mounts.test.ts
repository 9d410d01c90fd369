import { expect } from 'chai';
import { resolveMount } from './mounts.ts';

describe('resolveMount', () => {
  const roots = [
    { name: 'cache', path: '/data/cache' },
    { name: 'node', path: '/app/node' },
  ];
  const reason = (real: string, target: string): string => {
    try {
      resolveMount(real, real, target, roots);
      return 'none';
    } catch (error) {
      return (error as { reason: string }).reason;
    }
  };

  it('finds the root that a source lies in', () => {
    expect(resolveMount('/link', '/data/cache/harness/pi', '/opt//pi/', roots)).to.eql({
      root: 'cache',
      below: 'harness/pi',
      source: '/data/cache/harness/pi',
      target: '/opt/pi',
    });
    expect(resolveMount('/app/node', '/app/node', '/opt/node', roots).below).to.equal('');
  });

  it('refuses everything else', () => {
    for (const source of ['/', '/data', '/data/cache2', '/etc/passwd'])
      expect(reason(source, '/opt/x')).to.equal('UNSAFE_PATH');
    for (const target of ['/', '/usr', '/etc', '/proc/1', '/dev/x', '/polar', '/a/../b', 'opt']) {
      expect(reason('/data/cache/x', target), target).to.equal('UNSAFE_PATH');
    }
    expect(reason('/data/cache/x', '/polar/session/tool')).to.equal('none');
  });
});
