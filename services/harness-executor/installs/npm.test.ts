import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { npmInstall } from './npm.ts';

const VERSION = '1.0.0';
const INSTALL = { name: 'polar-test-main', version: VERSION, entry: 'node_modules/polar-test-main/cli.js' };
const PACKAGES = {
  'polar-test-main': {
    optionalDependencies: { 'polar-test-tool': VERSION, 'polar-test-elsewhere': VERSION },
  },
  'polar-test-tool': {},
  'polar-test-elsewhere': { os: ['aix'] },
};
const { signal } = new AbortController();
const CACHE = 'npm_config_cache';
const { [CACHE]: cacheBefore } = process.env;

describe('npm', () => {
  let folder: string;
  let server: Server;
  /** Packages whose files the registry does not give. */
  let broken: string[] = [];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-npm-'));
    server = createServer((request, response) => {
      const [, name = '', isFile] = /^\/([^/]+)(\/.*)?$/.exec(request.url ?? '') ?? [];
      if (isFile && broken.includes(name)) response.writeHead(500).end();
      else if (isFile) response.end(fileOf(name));
      else response.end(JSON.stringify(aboutOf(name as keyof typeof PACKAGES)));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    for (const [name, more] of Object.entries(PACKAGES)) {
      const root = join(folder, name, 'package');
      mkdirSync(root, { recursive: true });
      writeFileSync(join(root, 'package.json'), JSON.stringify({ name, version: VERSION, ...more }));
      writeFileSync(join(root, 'cli.js'), '');
      execFileSync('tar', ['-czf', `${root}.tgz`, '-C', join(folder, name), 'package']);
    }
  });
  after(() => {
    if (cacheBefore === undefined) delete process.env[CACHE];
    else process.env[CACHE] = cacheBefore;
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });

  const registry = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const fileOf = (name: string): Buffer => readFileSync(join(folder, name, 'package.tgz'));
  function aboutOf(name: keyof typeof PACKAGES): object {
    const integrity = `sha512-${createHash('sha512').update(fileOf(name)).digest('base64')}`;
    const dist = { tarball: `${registry()}/${name}/-/file.tgz`, integrity };
    const one = { name, version: VERSION, ...PACKAGES[name], dist };
    return { name, 'dist-tags': { latest: VERSION }, versions: { [VERSION]: one } };
  }
  /** A folder with settings of its own. */
  function project(name: string): string {
    const made = join(folder, name);
    mkdirSync(made);
    writeFileSync(join(made, '.npmrc'), `registry=${registry()}/\nfetch-retries=0\n`);
    // Not in that file: `npm test` sets it for what it runs, and goes before files.
    process.env[CACHE] = join(made, 'npm');
    writeFileSync(join(made, 'package.json'), '{"private":true}');
    return made;
  }

  it('installs a package with its optional ones for this machine', async () => {
    broken = [];
    expect((await npmInstall(project('whole'), INSTALL, signal)).exitCode).to.equal(0);
  });

  it('that could not fetch one of them has not installed it, though it says that it has', async () => {
    broken = ['polar-test-tool'];
    const error = await npmInstall(project('part'), INSTALL, signal).catch((thrown) => thrown);
    expect(error).to.be.instanceOf(Error);
    expect(error.message).to.contain('could not fetch polar-test-tool');
  });
});
