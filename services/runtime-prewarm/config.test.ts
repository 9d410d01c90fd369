import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from './config.ts';

describe('configuration of runtime-prewarm', () => {
  it('leads the user of a sandbox through the cache, whoever made it and with which umask', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-config-'));
    try {
      // Of mode 700.
      const cache = mkdtempSync(join(folder, 'cache-'));
      const file = join(folder, 'topology.yaml');
      const gateway = { nodes: [{ id: 'one', cache_dir: cache }] };
      writeFileSync(file, JSON.stringify({ data_dir: folder, gateway }));
      readConfig({ POLAR_TOPOLOGY: file });
      expect(statSync(cache).mode & 0o777).to.equal(0o711);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
