import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { AttemptRefSchema, EvaluateWorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { ExecResultSchema } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { sleep } from '../../common/clock.ts';
import type { ExecOutput } from '../../common/exec.ts';
import { testOnOutputConfig } from '../../common/specs/strategies.ts';
import type { Sandbox } from '../sandboxes/sandbox.ts';
import { type Changes, readChanges } from './read-changes.ts';

/** In seconds, as a task says it. */
const APPLY_TIMEOUT = 0.2;
const SLOW_MS = 100;

describe('changes that take all of apply_timeout', () => {
  const config = testOnOutputConfig.parse({
    ...{ test_command: 'x', apply_timeout: APPLY_TIMEOUT, expected_output_json: { a: 'PASSED' } },
  });
  const never = (): Promise<never> => Promise.reject(new Error('no command is run here'));
  const sandbox = (): Sandbox => ({ exec: never, putFile: never });
  const output = (timedOut: boolean, exitCode = 0): ExecOutput => ({
    ...{ stdout: Buffer.from('patch'), stderr: new Uint8Array() },
    result: create(ExecResultSchema, { timedOut, exitCode }),
  });

  interface Case {
    readonly again: ExecOutput;
    readonly fresh?: ExecOutput;
    readonly freshMs?: number;
    readonly leftMs?: number;
    readonly isWholeAgain?: boolean;
  }
  /** What is read, or the flag of a grade, or why there is none. */
  async function found(given: Case): Promise<unknown> {
    const { again, fresh = output(false), freshMs = 0, leftMs = 60_000, isWholeAgain = true } = given;
    const [live, other] = [sandbox(), sandbox()];
    const changes: Changes = {
      what: 'patch_command:',
      async read(from) {
        if (from === live) return output(true);
        await sleep(freshMs);
        return fresh;
      },
      readAgain: async () => again,
      isWholeAgain,
    };
    const work = create(EvaluateWorkSchema);
    const evaluation = {
      ref: create(AttemptRefSchema),
      work,
      remainingMs: () => leftMs,
      kept: { outcome: undefined },
    };
    const job = { config, evaluation, test: never };
    return await readChanges(job, changes, live, (use) => use(other)).then(
      (read) => ('reward' in read ? read.told['patch_timeout'] : Buffer.from(read.stdout).toString()),
      ({ reason }) => reason,
    );
  }

  it('twice, have 0 where a fresh sandbox is read quickly', async () => {
    expect(await found({ again: output(true) })).to.equal(true);
    expect(await found({ again: output(true), isWholeAgain: false })).to.equal(true);
  });

  it('once, are read, but not by a command of which nobody knows what it does the second time', async () => {
    expect(await found({ again: output(false) })).to.equal('patch');
    expect(await found({ again: output(false), isWholeAgain: false })).to.equal('EVALUATION_TIMEOUT');
  });

  it('are no result where the machine may be slow, or the budget had no room for it', async () => {
    expect(await found({ again: output(true), fresh: output(true) })).to.equal('EVALUATION_TIMEOUT');
    expect(await found({ again: output(true), freshMs: SLOW_MS })).to.equal('EVALUATION_TIMEOUT');
    expect(await found({ again: output(true), leftMs: 100 })).to.equal('EVALUATION_TIMEOUT');
  });

  it("are the task's fault where its command fails without them, too", async () => {
    expect(await found({ again: output(true), fresh: output(false, 1) })).to.equal('INVALID_TASK');
  });
});
