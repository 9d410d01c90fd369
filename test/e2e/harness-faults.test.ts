// Harnesses that do what they should not, in real sandboxes and through the whole mesh: each session ends with a typed
// outcome within its budget, what the harness wrote can be read, and nothing of it is left on the machine.
import { existsSync } from 'node:fs';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import {
  type PrepareStep,
  PrepareStepSchema,
  type TaskSpec,
  type TaskSpecSchema,
} from '../../gen/ts/polar/common/v1/task_pb.js';
import {
  type GetSessionLogsResponse,
  HarnessService,
} from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { HARNESS_LOG_EDGE_BYTES } from '../../services/common/limits.ts';
import { eventually } from '../support/eventually.ts';
import { leavesNothing, leftoversOfNode } from '../support/leftovers.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { bwrapIsThere, isHostRoot } from '../support/runtime-prewarm.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

/** In command lines of what these harnesses start. */
const MARK = 'sleep 77091';
const GIB = 1024 ** 3;
const WAIT_MS = 90_000;
const disksAreThere = bwrapIsThere && isHostRoot && existsSync('/dev/loop-control');

type More = Exclude<MessageInitShape<typeof TaskSpecSchema>, TaskSpec>;

interface Case {
  readonly name: string;
  readonly command: string;
  readonly more?: More;
  readonly outcome: Outcome;
  readonly reason?: string;
  /** Of the session's end. */
  readonly check?: (session: Session, logs: GetSessionLogsResponse) => void;
}

const shell = (command: string) => ({ name: 'shell', modelName: 'm', command: { command } });
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

const CASES: readonly Case[] = [
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

const DISK: Case = {
  name: 'fills its disk',
  command: 'dd if=/dev/zero of=fill bs=1M count=1000',
  more: { runtime: { storageMb: 32 } },
  ...{ outcome: Outcome.HARNESS_ERROR, reason: 'HARNESS_EXIT' },
  check: (_session, { stderr }) => {
    expect(Buffer.from(stderr).toString()).to.contain('No space left on device');
  },
};

/** Whose preparation fails: there is nothing of a harness to read. */
const PREPARATIONS: readonly (Omit<Case, 'command' | 'check'> & { readonly attempts: number })[] = [
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

describe('harnesses that misbehave', function () {
  this.timeout(2 * WAIT_MS);
  let mesh: Mesh;
  let rollout: Client<typeof RolloutService>;
  let harnesses: Client<typeof HarnessService>;
  const cases = [...CASES, ...(disksAreThere ? [DISK] : [])];
  const idOf = (name: string): string => name.replaceAll(/\W+/g, '-');

  before(async () => {
    mesh = await startMesh();
    rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    harnesses = createServiceClient(HarnessService, mesh.harnessUrl);
    // All at once: what one does must not be felt by the others.
    for (const { name, command, more } of cases) {
      await rollout.submitTask({ spec: curlTask(idOf(name), 1, 1, { ...more, harness: shell(command) }) });
    }
    for (const { name, more } of PREPARATIONS) {
      await rollout.submitTask({ spec: curlTask(idOf(name), 1, 1, { ...more, harness: shell('true') }) });
    }
  });
  after(() => mesh?.[Symbol.asyncDispose]());

  const endOf = async (name: string): Promise<Session> => {
    const [session] = await waitForEnd(rollout, idOf(name), WAIT_MS);
    return session ?? expect.fail('it has no session');
  };

  for (const { name, outcome, reason, check } of cases) {
    it(`one that ${name}: ${Outcome[outcome]}`, async () => {
      const session = await endOf(name);
      expect(session.outcome, session.failure?.message).to.equal(outcome);
      expect(session.failure?.reason).to.equal(reason);
      expect(session.attempt).to.equal(1);
      const { sessionId } = session;
      check?.(session, await harnesses.getSessionLogs({ sessionId }));
    });
  }

  for (const { name, outcome, reason, attempts } of PREPARATIONS) {
    it(`a preparation that ${name}: ${reason}`, async () => {
      const session = await endOf(name);
      expect(session.outcome, session.failure?.message).to.equal(outcome);
      expect(session.failure?.reason).to.equal(reason);
      expect(session.attempts.length).to.equal(attempts);
      expect(session.reward).to.equal(undefined);
    });
  }

  it('are followed by one that behaves', async () => {
    await rollout.submitTask({ spec: curlTask('after', 1, 3) });
    const session = await endOf('after');
    expect(session.outcome, session.failure?.message).to.equal(Outcome.COMPLETED);
    expect(session.stats?.calls).to.equal(3);
  });

  it('leave no process, folder, group, mount or device behind, and the mesh none when it ends', async () => {
    const { nodeFolder } = mesh;
    await leavesNothing(nodeFolder, [MARK]);
    await mesh[Symbol.asyncDispose]();
    await eventually('the node is gone', () => leftoversOfNode(nodeFolder, [MARK]).length === 0);
  });
});
