import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { PolarError } from '../common/errors.ts';
import { readConfig } from './config.ts';

describe('judges of the evaluator’s configuration', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-config-'));
  const file = join(folder, 'topology.yaml');
  const judges = {
    open: { base_url: 'http://a/v1/', model: 'm' },
    keyed: { base_url: 'http://b', model: 'n', api_key_env: 'JUDGE_KEY' },
  };
  before(() => writeFileSync(file, JSON.stringify({ evaluators: { judges } })));
  after(() => rmSync(folder, { recursive: true }));

  it('have their keys from the environment, and keep them out of what is written', () => {
    const config = readConfig({ POLAR_TOPOLOGY: file, JUDGE_KEY: ' sk-env ' });
    const [open, keyed, ...rest] = config.judges.values();
    expect(rest).to.deep.equal([]);
    expect([open?.baseUrl, open?.model, open?.key()]).to.deep.equal(['http://a/v1', 'm', undefined]);
    expect([keyed?.baseUrl, keyed?.model, keyed?.key()]).to.deep.equal(['http://b', 'n', 'sk-env']);
    expect(JSON.stringify([config, open, keyed])).not.to.contain('sk-env');
  });

  it('are refused where a key is not set', () => {
    try {
      readConfig({ POLAR_TOPOLOGY: file });
      expect.fail('no fault');
    } catch (error) {
      expect((error as PolarError).fields).to.deep.equal([
        {
          field: 'evaluators.judges.keyed.api_key_env',
          description: 'JUDGE_KEY is not set for the evaluator',
        },
      ]);
    }
  });
});
