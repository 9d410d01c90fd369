import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseTopology } from '../common/config/topology.ts';
import type { PolarError } from '../common/errors.ts';
import { poolsOf } from './config.ts';

const nodeOf = (more: object) => {
  const text = JSON.stringify({ gateway: { nodes: [more] } });
  return parseTopology(text, 'topology.yaml').gateway.nodes[0]!;
};

describe('engines of the llm-proxy’s configuration', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-config-'));
  const file = join(folder, 'key');
  before(() => writeFileSync(file, 'sk-file\n'));
  after(() => rmSync(folder, { recursive: true }));

  it('are the policy’s, then those of frozen models, each with its key', () => {
    const pool = { alias: 'pool/a', base_url: 'http://a/v1', api_key_env: 'A_KEY', max_active_episodes: 3 };
    const inference = { servers: ['http://b', 'http://c'], api_key_file: file, stream: 'made' };
    const node = nodeOf({ model_served: 'm', inference, model_pool: [pool] });
    const [policy, frozen, ...rest] = poolsOf(node, { A_KEY: ' sk-env ' });
    expect(rest).to.deep.equal([]);
    expect(policy).to.deep.include({
      alias: '',
      kind: 'sglang',
      model: 'm',
      urls: ['http://b', 'http://c'],
      madeStreams: true,
      callsMax: 1024,
      queueMs: 30_000,
      sessionsMax: null,
    });
    expect(frozen).to.deep.include({ alias: 'pool/a', kind: 'openai', urls: ['http://a/v1'], callsMax: 32 });
    expect(frozen?.sessionsMax).to.equal(3);
    expect([policy, frozen].map((spec) => spec?.key?.authorization)).to.deep.equal([
      'Bearer sk-file',
      'Bearer sk-env',
    ]);
    expect(JSON.stringify([policy, frozen])).to.not.match(/sk-/);
  });

  it('have faults that are told all at once', () => {
    const node = nodeOf({
      inference: { api_key_env: 'NOT_SET' },
      model_pool: [
        { alias: 'pool/a', base_url: 'http://a', api_key_env: 'NOT_SET', api_key_file: file },
        { alias: 'pool/b', base_url: 'http://b', api_key_file: join(folder, 'none') },
      ],
    });
    try {
      poolsOf(node, {});
      expect.fail('no faults');
    } catch (error) {
      expect((error as PolarError).fields.map(({ field }) => field)).to.deep.equal([
        'inference.api_key_env',
        'model_pool[0].api_key_file',
        'model_pool[1].api_key_file',
      ]);
    }
  });
});
