// docs/metrics.md names each metric of each service, as the services do.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { described } from '../../services/common/metrics.ts';
import '../../services/common/metrics-answer.ts';
import '../../services/common/rpc-metrics.ts';
import '../../services/evaluator/metrics.ts';
import '../../services/harness-executor/metrics.ts';
import '../../services/llm-proxy/metrics.ts';
import '../../services/reconstructor/metrics.ts';
import '../../services/runtime-prewarm/metrics.ts';
import '../../services/scheduler/metrics.ts';

const SHOWN = described().filter(({ name }) => !name.startsWith('polar_test_'));
const DOC = readFileSync(join(import.meta.dirname, '../../docs/metrics.md'), 'utf8');

describe('docs/metrics.md', () => {
  it('has a row for each metric, and no other', () => {
    const rows = DOC.split('\n').filter((line) => line.startsWith('| `'));
    const wanted = SHOWN.map(({ name, type, labelNames, help }) => {
      const labels = labelNames.map((label) => `\`${label}\``).join(', ');
      return `| \`${name}\` | ${type} | ${labels} | ${help} |`;
    });
    expect(rows.toSorted()).to.deep.equal(wanted.toSorted());
  });

  it('holds names that Prometheus takes, with units, and counters that say so', () => {
    for (const { name, type, labelNames } of SHOWN) {
      expect(name).to.match(/^(polar|process|nodejs)_[a-z_]+$/);
      expect(name.endsWith('_total'), name).to.equal(type === 'counter');
      for (const label of labelNames) expect(label).to.match(/^[a-z_]+$/);
    }
  });
});
