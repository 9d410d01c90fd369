import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { wantedTopology } from './topology.ts';

describe('the topology of a local mesh', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-topology-'));
  after(() => rmSync(folder, { recursive: true }));

  it('has the engine of the command line in place of all that the file names', () => {
    const config = join(folder, 'topology.yaml');
    const common = '&common {max_run_workers: 7, inference: {servers: ["http://a:1", "http://b:1"]}}';
    writeFileSync(config, `gateway: {nodes: [{id: n, <<: ${common}}]}\n`);
    const given = { config, dataDir: undefined, engine: 'vllm', engineUrl: 'http://c:1' };
    const [node] = wantedTopology(given).topology.gateway.nodes;
    expect(node).to.include({ id: 'n', max_run_workers: 7 });
    expect(node?.inference).to.deep.include({ engine: 'vllm', base_url: 'http://c:1', servers: [] });
  });
});
