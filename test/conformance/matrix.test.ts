import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { packFloats, packIds } from '../../services/common/columns.ts';
import { DONE } from './cases/case.ts';
import { CASES } from './cases/index.ts';
import type { Cli } from './clis/cli.ts';
import { pi } from './clis/pi.ts';
import { page, type Result } from './matrix.ts';
import type { Seen } from './trial.ts';
import { faultsOf } from './verdict.ts';

const one = CASES.find(({ name }) => name === 'parallel-calls') as (typeof CASES)[number];
const record = (finishReason: string, startSeq: number, more: object = {}) =>
  create(CompletionSchema, {
    callId: `c${startSeq}`,
    startSeq: BigInt(startSeq),
    promptLength: 3,
    sampledIds: packIds([1, 2]),
    logprobs: packFloats([-1, -1]),
    finishReason,
    dialect: 'openai-chat',
    role: 'main',
    ...more,
  });
const good: Seen = {
  commands: [{ exitCode: 0, out: DONE, err: '' }],
  files: { 'one.txt': 'one\n', 'two.txt': 'two\n', 'three.txt': 'three\n' },
  records: [record('stop', 2), record('tool_calls', 0)],
  counted: 2,
  traces: 1,
  breaches: [],
  ms: 1_000,
};

describe('the verdict on a trial', () => {
  it('finds nothing where all is as it had to be', () => {
    expect(faultsOf(pi, one, good)).to.deep.equal([]);
  });

  it('finds each thing that is otherwise', () => {
    const wrong: [Partial<Seen>, RegExp][] = [
      [{ commands: [{ exitCode: 1, out: DONE, err: '' }] }, /exit codes/],
      [{ commands: [{ exitCode: 0, out: '', err: DONE }] }, /does not say/],
      [{ files: { ...good.files, 'two.txt': null } }, /files/],
      [{ records: [record('tool_calls', 0)], counted: 1 }, /finish reasons/],
      [{ counted: 3 }, /counted/],
      [{ traces: 2 }, /traces/],
      [{ breaches: ['not once'] }, /laws/],
      [{ records: [record('tool_calls', 0), record('stop', 2, { role: 'sub' })] }, /sub-agents/],
      [{ records: [record('tool_calls', 0), record('stop', 2, { dialect: 'x' })] }, /dialect of c2/],
      [{ records: [record('tool_calls', 0), record('stop', 2, { logprobs: undefined })] }, /logprobs of c2/],
      [{ records: [record('tool_calls', 0), record('stop', 2, { promptLength: 0 })] }, /c2 has no ids/],
    ];
    for (const [change, fault] of wrong) {
      const faults = faultsOf(pi, one, { ...good, ...change });
      expect(faults.length, String(fault)).to.equal(1);
      expect(faults[0]).to.match(fault);
    }
  });
});

describe('the page of a run', () => {
  const result: Result = { cli: pi, one, faults: [], ms: 1_234, calls: 2, traces: 1 };
  const cells = (text: string): string[] =>
    text
      .split('\n')
      .find((line) => line.startsWith('| parallel-calls |'))
      ?.split('|') ?? [];

  it('shows what came of each trial', () => {
    expect(cells(page([pi], [one], [result], '', ''))[2]).to.equal(' ok 1.2 s 2/1 ');
    const failed = { ...result, faults: ['files'] };
    expect(cells(page([pi], [one], [failed], '', ''))[2]).to.contain('**failed**');
    expect(cells(page([pi], [one], [], '', ''))[2]).to.equal(' not run ');
  });

  it('keeps a cell of an earlier run, but not of another version', () => {
    const before = page([pi], [one], [result], '', '');
    expect(cells(page([pi], [one], [], '', before))[2]).to.equal(' ok 1.2 s 2/1 ');
    const next: Cli = { ...pi, version: '9.9.9' };
    expect(cells(page([next], [one], [], '', before))[2]).to.equal(' not run ');
  });
});
