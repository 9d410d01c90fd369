import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { readConfig as readPrewarmConfig } from '../runtime-prewarm/config.ts';
import { readConfig } from './config.ts';

describe('configuration of the harness executor', () => {
  const { execPath } = process;
  const home = mkdtempSync(join(tmpdir(), 'polar-test-config-'));
  after(() => rmSync(home, { recursive: true }));
  afterEach(() => {
    process.execPath = execPath;
  });

  it('names a folder of Node.js that runtime-prewarm mounts, whichever Node.js runs them', () => {
    process.execPath = '/opt/another/bin/node';
    const node = { id: 'one', cache_dir: join(home, 'cache') };
    const env = { POLAR_TOPOLOGY: join(home, 'topology.yaml') };
    writeFileSync(env.POLAR_TOPOLOGY, JSON.stringify({ data_dir: home, gateway: { nodes: [node] } }));
    const { nodeDir } = readConfig(env);
    expect(readPrewarmConfig(env).mountRoots).to.deep.include({ name: 'node', path: nodeDir });
  });
});
