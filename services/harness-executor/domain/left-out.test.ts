import { expect } from 'chai';
import { type LockedPackage, leftOut } from './left-out.ts';

const MACHINE = { os: 'linux', cpu: 'x64', libc: 'glibc', node: '24.3.0' };
const asks = (...names: string[]): LockedPackage => ({
  optionalDependencies: Object.fromEntries(names.map((name) => [name, '1.0.0'])),
});

describe('packages that npm left out', () => {
  const found = (more: Record<string, LockedPackage>, there: readonly string[] = []): string[] => {
    const main = asks(...Object.keys(more).map((path) => path.replace(/^.*node_modules\//, '')));
    const packages = { '': {}, 'node_modules/main': main, ...more };
    return leftOut(packages, (path) => ['node_modules/main', ...there].includes(path), MACHINE);
  };

  it('are optional ones for this machine that are not there', () => {
    expect(found({ 'node_modules/tool': {} })).to.deep.equal(['node_modules/tool']);
    expect(found({ 'node_modules/tool': {} }, ['node_modules/tool'])).to.deep.equal([]);
    expect(found({ 'node_modules/main/node_modules/tool': {} })).to.deep.equal([
      'node_modules/main/node_modules/tool',
    ]);
  });

  it('are none for another machine', () => {
    const others: LockedPackage[] = [
      { os: ['darwin'] },
      { os: ['!linux'] },
      { cpu: ['arm64', 'wasm32'] },
      { os: ['linux'], cpu: ['x64'], libc: ['musl'] },
      { engines: { node: '>=25' } },
      { engines: { node: '^18 || ^20' } },
    ];
    for (const one of others) {
      expect(found({ 'node_modules/tool': one }), JSON.stringify(one)).to.deep.equal([]);
    }
    const own = { os: ['linux'], cpu: ['!arm64'], libc: ['glibc'], engines: { node: '>= 20.9.0' } };
    expect(found({ 'node_modules/tool': own })).to.deep.equal(['node_modules/tool']);
  });

  it('are none that only those ask for that are not there themselves', () => {
    const packages = {
      'node_modules/main': asks('for-mac'),
      'node_modules/for-mac': { os: ['darwin'], ...asks('tool') },
      'node_modules/tool': {},
    };
    expect(leftOut(packages, (path) => path === 'node_modules/main', MACHINE)).to.deep.equal([]);
  });
});
