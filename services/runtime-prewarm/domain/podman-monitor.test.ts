import { expect } from 'chai';
import { monitoredIn } from './podman-monitor.ts';

const line = (...argv: string[]): string => `${argv.join('\0')}\0`;

describe('monitors of podman', () => {
  it('name the container of their command, and are not the one of a container', () => {
    const monitor = (unit: string) => line('/usr/bin/conmon', '--api-version', '1', '-c', 'abc', '-u', unit);
    expect(monitoredIn(monitor('e1'))).to.equal('abc');
    expect(monitoredIn(monitor('abc'))).to.equal(undefined);
  });

  it('are no other programs', () => {
    for (const other of ['', line('sleep', '-c', 'abc', '-u', 'e1'), line('/usr/bin/conmon', '-c')])
      expect(monitoredIn(other)).to.equal(undefined);
  });
});
