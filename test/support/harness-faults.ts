// What harnesses and preparations do that they should not, and how their sessions end.
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import {
  type PrepareStep,
  PrepareStepSchema,
  type RuntimeSpec,
  type RuntimeSpecSchema,
  type TaskSpec,
  type TaskSpecSchema,
} from '../../gen/ts/polar/common/v1/task_pb.js';
import type { GetSessionLogsResponse } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { HARNESS_LOG_EDGE_BYTES } from '../../services/common/limits.ts';
import { sleepMark } from './sleep-mark.ts';

/** In command lines of what these harnesses start. */
export const MARK = sleepMark();
const GIB = 1024 ** 3;

type Runtime = Exclude<MessageInitShape<typeof RuntimeSpecSchema>, RuntimeSpec>;
type More = Omit<Exclude<MessageInitShape<typeof TaskSpecSchema>, TaskSpec>, 'runtime'> & {
  readonly runtime?: Runtime;
};

export interface HarnessFault {
  readonly name: string;
  readonly command: string;
  readonly more?: More;
  readonly outcome: Outcome;
  readonly reason?: string;
  /** Of the session's end. */
  readonly check?: (session: Session, logs: GetSessionLogsResponse) => void;
}

export const shell = (command: string) => ({ name: 'shell', modelName: 'm', command: { command } });
const step = (command: string, maxAttempts = 1): PrepareStep =>
  create(PrepareStepSchema, { step: { case: 'exec', value: { command, maxAttempts } } });
const runFor = (ms: number): More => ({ budgets: { run: durationFromMs(ms) } });

const CONNECT = `import socket, sys
held = []
for i in range(10000):
    try:
        one = socket.create_connection(("127.0.0.1", 4141), timeout=2)
        held.append(one)
    except OSError:
        pass
    if len(held) > 900: held.pop(0).close()
print("opened", i + 1)
sys.exit(4)`;

export const HARNESS_FAULTS: readonly HarnessFault[] = [
  {
    name: 'leaves daemons behind',
    command: `for i in 1 2 3; do (setsid nohup ${MARK} > /dev/null 2>&1 &); done; (${MARK} &) & echo done`,
    outcome: Outcome.COMPLETED,
    check: (_session, { stdout }) => expect(Buffer.from(stdout).toString()).to.equal('done\n'),
  },
  {
    name: 'ignores SIGTERM and never ends',
    command: `trap '' TERM INT HUP QUIT; echo begun; while :; do ${MARK}; done`,
    more: runFor(3_000),
    ...{ outcome: Outcome.TIMEOUT, reason: 'HARNESS_TIMEOUT' },
    check: (_session, { stdout }) => expect(Buffer.from(stdout).toString()).to.equal('begun\n'),
  },
  {
    name: 'prints 1 GiB',
    command: `head -c ${GIB} /dev/zero`,
    outcome: Outcome.COMPLETED,
    check: (_session, { stdout, stdoutSize }) => {
      expect(Number(stdoutSize)).to.be.greaterThan(0);
      expect(stdout.byteLength).to.be.within(1, 2 * HARNESS_LOG_EDGE_BYTES + 1_024);
    },
  },
  {
    name: 'writes binary on both streams',
    command: 'printf "\\377\\000\\376\\033[31m\\200"; printf "\\000\\377" >&2; exit 3',
    ...{ outcome: Outcome.HARNESS_ERROR, reason: 'HARNESS_EXIT' },
    check: (session, { stdout, stderr }) => {
      expect(Buffer.from(stdout).toString('hex')).to.equal('ff00fe1b5b33316d80');
      expect(Buffer.from(stderr).toString('hex')).to.equal('00ff');
      expect(session.failure?.message).to.contain('exit code 3');
    },
  },
  {
    name: 'ends at once, with nothing done',
    command: 'exit 0',
    outcome: Outcome.COMPLETED,
    check: ({ stats, reward }) => {
      expect(stats).to.include({ calls: 0, traces: 0 });
      expect(reward).to.equal(1);
    },
  },
  {
    name: 'deletes its home and everything else it may',
    command: 'rm -rf "$HOME" /polar /tmp /etc /var; rm -rf --no-preserve-root / 2> /dev/null; exit 6',
    ...{ outcome: Outcome.HARNESS_ERROR, reason: 'HARNESS_EXIT' },
    check: ({ failure }) => expect(failure?.message).to.contain('exit code 6'),
  },
  {
    name: 'locks its folders against being deleted',
    command: 'mkdir -p a/b/c && touch a/b/c/d && chmod 000 a/b/c a/b a .',
    outcome: Outcome.COMPLETED,
  },
  {
    name: 'opens 10,000 connections',
    command: `python3 -c '${CONNECT}'`,
    ...{ outcome: Outcome.HARNESS_ERROR, reason: 'HARNESS_EXIT' },
    check: (_session, { stdout }) => expect(Buffer.from(stdout).toString()).to.equal('opened 10000\n'),
  },
  {
    name: 'takes more memory than it has',
    command: "python3 -c 'a = bytearray(400 << 20)'; exit 8",
    more: { runtime: { memoryMb: 128 } },
    ...{ outcome: Outcome.HARNESS_ERROR, reason: 'HARNESS_EXIT' },
    check: ({ failure }) => expect(failure?.message).to.match(/memory limit|exit code 8/),
  },
  {
    name: 'is prepared at the third try',
    command: 'cat tries',
    more: { runtime: { prepare: [step('echo x >> tries; [ $(wc -l < tries) = 3 ]', 3)] } },
    outcome: Outcome.COMPLETED,
    check: (session, { stdout }) => {
      expect(Buffer.from(stdout).toString()).to.equal('x\nx\nx\n');
      expect(session.attempt).to.equal(1);
    },
  },
];

/** Where the storage of a sandbox can be limited. */
export const DISK_FAULT: HarnessFault = {
  name: 'fills its disk',
  command: 'dd if=/dev/zero of=fill bs=1M count=1000',
  more: { runtime: { storageMb: 32 } },
  ...{ outcome: Outcome.HARNESS_ERROR, reason: 'HARNESS_EXIT' },
  check: (_session, { stderr }) => {
    expect(Buffer.from(stderr).toString()).to.contain('No space left on device');
  },
};

/** Whose preparation fails: there is nothing of a harness to read. */
export const PREPARATION_FAULTS: readonly (Omit<HarnessFault, 'command' | 'check'> & {
  readonly attempts: number;
})[] = [
  {
    name: 'fails',
    more: { runtime: { prepare: [step('echo broken >&2; exit 9', 2)] } },
    ...{ outcome: Outcome.TASK_ERROR, reason: 'PREPARE_FAILED', attempts: 1 },
  },
  {
    name: 'hangs',
    more: {
      runtime: { prepare: [step(`setsid ${MARK} & trap '' TERM; ${MARK}`)] },
      budgets: { prepare: durationFromMs(1_500) },
      maxAttempts: 2,
    },
    ...{ outcome: Outcome.INFRASTRUCTURE_ERROR, reason: 'PREPARE_TIMEOUT', attempts: 2 },
  },
];
