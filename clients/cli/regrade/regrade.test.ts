import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, type JsonObject } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { EvaluatorSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { PolarError } from '../../../services/common/errors.ts';
import { LinesFile } from './lines-file.ts';
import { digestOf, type Regraded, regradedTable, shortOf, summaryOf } from './regrade.ts';

const row = (id: string, old: number | null, reward: number, evaluation: JsonObject = {}): Regraded => ({
  ...{ session_id: id, task_id: 't', sample_index: 0, attempt: 1, outcome: 'COMPLETED' },
  ...{ old_reward: old, reward, evaluation, trace_rewards: {}, evaluator_sha256: 'e' },
});
const none = { session_id: 's-9', old_reward: 1, reason: 'NOTHING_TO_GRADE', message: 'none\nat all' };

describe('sessions that were graded again', () => {
  it('have a line each, that says why one is not resolved', () => {
    const told = { resolved: false, tests_parsed: 1, tests_expected: 2 };
    const rows = [
      row('s-0', 0, 1, { resolved: true }),
      row('s-1', null, 0, told),
      row('s-2', 1, 0, { ...told, failed_apply_patch: true }),
      row('s-3', 1, 0.5, {}),
      none,
    ];
    expect(
      regradedTable(rows)
        .split('\n')
        .map((line) => line.replaceAll(/ {2,}/g, ' | ')),
    ).to.deep.equal([
      'session | old | new | resolved | why not',
      's-0 | 0.00 | 1.00 | yes',
      's-1 | – | 0.00 | no | the results differ: 1 read, 2 expected',
      's-2 | 1.00 | 0.00 | no | the changes do not apply',
      's-3 | 1.00 | 0.50',
      's-9 | 1.00 | – | NOTHING_TO_GRADE: none',
    ]);
    expect(summaryOf(rows)).to.equal(
      '4 graded again, 4 of them with another reward; mean reward 0.667 before, 0.375 now; 1 without a reward',
    );
    expect(summaryOf([none])).to.contain('mean reward – before, – now');
  });

  it('differ in what is shown where their rewards do', () => {
    const shown = (old: number, now: number) => regradedTable([row('s-0', old, now)]).split('\n')[1];
    expect(shown(0.501, 0.504)).to.match(/ 0\.501 +0\.504$/);
    expect(shown(0.501, 0.501)).to.match(/ 0\.50 +0\.50$/);
  });

  it('are held without their outputs, and told the same', () => {
    const told = { resolved: false, tests_parsed: 1, tests_expected: 2, patch_exit_code: 3 };
    const whole = row('s-0', 0, 1, { ...told, test_output_tail: 'x', results: { a: 'PASSED' } });
    expect(shortOf(whole).evaluation).to.deep.equal(told);
    expect(regradedTable([shortOf(whole), shortOf(none)])).to.equal(regradedTable([whole, none]));
  });

  it('say what is wrong with an evaluator, and not only that something is', () => {
    const faulty = { session_id: 's-0', old_reward: 1, reason: 'INVALID_TASK' };
    const message = 'the evaluator has 1 fault(s):\n  evaluator: task a has none: one is to be given';
    expect(regradedTable([{ ...faulty, message }])).to.match(
      / INVALID_TASK: the evaluator has 1 fault\(s\): evaluator: task a has none: one is to be given$/,
    );
  });

  it('know their evaluator, in whatever order it was written', () => {
    const evaluator = (config: JsonObject) => create(EvaluatorSpecSchema, { strategy: 'a', config, env: {} });
    const digest = digestOf(evaluator({ a: { x: [1, 2], y: 1 }, b: 2 }));
    expect(digestOf(evaluator({ b: 2, a: { y: 1, x: [1, 2] } }))).to.equal(digest);
    expect(digestOf(evaluator({ b: 2, a: { y: 1, x: [2, 1] } }))).to.not.equal(digest);
    expect(digestOf(undefined)).to.equal(null);
  });
});

describe('the file of rewards', () => {
  let file = '';
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-regrade-'));
    file = join(folder, 'out.jsonl');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** A command on the file, which has ended. */
  const opened = async (
    name: string,
    evaluator: string | null,
    use = (_: LinesFile) => {},
  ): Promise<void> => {
    await using lines = await LinesFile.open(name, evaluator);
    use(lines);
  };
  const fault = (name: string, evaluator: string | null): Promise<string> =>
    opened(name, evaluator).then(
      () => 'none',
      ({ reason, message }: PolarError) => `${reason} ${message}`,
    );

  it('goes on behind what is whole in it', async () => {
    await opened(file, 'e', (lines) => lines.add(row('s-0', 0, 1)));
    const whole = readFileSync(file, 'utf8');
    writeFileSync(file, `${whole}{"session_id": "s-1", "ü`);
    await opened(file, 'e', (again) => {
      expect([again.of('s-0', 1)?.reward, again.of('s-0', 2), again.of('s-1', 1)]).to.deep.equal([
        ...[1, undefined, undefined],
      ]);
      again.add(row('s-1', 0, 0));
    });
    expect(readFileSync(file, 'utf8')).to.equal(`${whole}${JSON.stringify(row('s-1', 0, 0))}\n`);
  });

  it('is of one command at a time, by whatever name', async () => {
    symlinkSync(file, join(folder, 'link'));
    await opened(file, 'e');
    for (const [mine, others] of [
      ['link', 'out.jsonl'],
      ['out.jsonl', 'link'],
    ] as const) {
      await using _ = await LinesFile.open(join(folder, mine), 'e');
      expect(await fault(join(folder, others), 'e')).to.match(
        /^INVALID_REQUEST .* is being written by another command/,
      );
    }
    expect(await fault(file, 'e'), 'both have ended').to.equal('none');
  });

  it('is left as it is where it is another one, or cannot be written', async () => {
    await opened(file, 'e', (lines) => lines.add(row('s-0', 0, 1)));
    const before = readFileSync(file, 'utf8');
    expect(await fault(file, null)).to.match(/^INVALID_REQUEST/);
    expect(await fault(folder, 'e')).to.match(/^INVALID_REQUEST/);
    expect(await fault(join(folder, 'none/out.jsonl'), 'e')).to.match(/^INVALID_REQUEST/);
    for (const other of ['not JSON\n', 'null\n', '{"a": 1}\n', `${before}[]\ntorn`]) {
      writeFileSync(file, other);
      expect(await fault(file, 'e'), other).to.match(/^INVALID_REQUEST/);
      expect(readFileSync(file, 'utf8')).to.equal(other);
    }
  });
});
