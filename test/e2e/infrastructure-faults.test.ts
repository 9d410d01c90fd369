// What the mesh stands on goes away, is full or is wrong: sessions end with a typed outcome all the same, and the cause is
// told on them.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { eventually } from '../support/eventually.ts';
import { leavesNothing } from '../support/leftovers.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { isHostRoot } from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const MARK = sleepMark();
const WAIT_MS = 90_000;
const HOUR_MS = 3_600_000;

const rolloutOf = (mesh: Mesh) => createServiceClient(RolloutService, mesh.schedulerUrl);
const shell = (command: string) => ({ name: 'shell', modelName: 'm', command: { command } });
const attemptsOf = ({ attempts }: Session): string[] =>
  attempts.map(({ failure }) => failure?.reason ?? 'ended');

async function run(mesh: Mesh, ...task: Parameters<typeof curlTask>): Promise<Session[]> {
  await rolloutOf(mesh).submitTask({ spec: curlTask(...task) });
  return await waitForEnd(rolloutOf(mesh), task[0], WAIT_MS);
}

describe('infrastructure that fails', function () {
  this.timeout(2 * WAIT_MS);

  for (const [name, ms] of [
    ['ahead', HOUR_MS],
    ['behind', -HOUR_MS],
  ] as const) {
    it(`a node whose clock is an hour ${name}: budgets and leases hold, nothing is lost`, async () => {
      await using mesh = await startMesh({ nodeClockAheadMs: ms });
      const started = Date.now();
      const [good] = await run(mesh, 'good', 1, 2);
      expect(good?.outcome, good?.failure?.message).to.equal(Outcome.COMPLETED);
      expect(good?.attempt).to.equal(1);
      expect(good?.stats?.calls).to.equal(2);
      for (const time of [good?.createTime, good?.endTime] as Timestamp[]) {
        expect(timestampMs(time)).to.be.within(started - 1_000, Date.now() + 1_000);
      }
      const [late] = await run(mesh, 'late', 1, 1, {
        harness: shell(`trap '' TERM; while :; do ${MARK}; done`),
        budgets: { run: { seconds: 2n } },
      });
      expect(late?.outcome).to.equal(Outcome.TIMEOUT);
      await leavesNothing(mesh.nodeFolder, [MARK]);
    });
  }

  it('the LLM proxy is killed in a call of a harness that gives up: tried again, and that is graded', async () => {
    await using mesh = await startMesh({ engineFlags: ['--token-ms', '100'] });
    const logs = createServiceClient(HarnessService, mesh.harnessUrl);
    const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'count' }] });
    const command = `curl -sSN --fail "$OPENAI_BASE_URL/chat/completions" -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d '${body}'`;
    const { sessionIds } = await rolloutOf(mesh).submitTask({
      spec: curlTask('cut', 1, 1, { harness: shell(command) }),
    });
    const [sessionId] = sessionIds;
    const output = async (): Promise<string> =>
      Buffer.from((await logs.getSessionLogs({ sessionId: sessionId ?? '', attempt: 1 })).stdout).toString();
    await eventually('the reply comes', async () => (await output().catch(() => '')).includes('data:'));
    await mesh.kill('llm-proxy');
    await mesh.start('llm-proxy');
    const [session] = await waitForEnd(rolloutOf(mesh), 'cut', WAIT_MS);
    expect(session?.outcome, session?.failure?.message).to.equal(Outcome.COMPLETED);
    expect(session && attemptsOf(session)).to.deep.equal(['PROXY_UNAVAILABLE', 'ended']);
    expect(session?.stats?.calls).to.equal(1);
  });

  if (isHostRoot) {
    it('a full disk: SANDBOX_FAILED with the cause, and good again when there is room', async () => {
      const dataDir = mkdtempSync(join(tmpdir(), 'polar-test-full-'));
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m,mode=755', 'polar-test', dataDir]);
      try {
        await using mesh = await startMesh({ dataDir });
        const filler = join(dataDir, 'filler');
        fill(filler);
        const [failed] = await run(mesh, 'full', 1, 1, { maxAttempts: 2 });
        expect(failed?.outcome).to.equal(Outcome.INFRASTRUCTURE_ERROR);
        expect(failed?.failure?.reason).to.equal('SANDBOX_FAILED');
        expect(failed?.failure?.message).to.contain('ENOSPC');
        expect(failed && attemptsOf(failed)).to.deep.equal(['SANDBOX_FAILED', 'SANDBOX_FAILED']);
        rmSync(filler);
        const [good] = await run(mesh, 'room', 1, 2);
        expect(good?.outcome, good?.failure?.message).to.equal(Outcome.COMPLETED);
        const [hungry] = await run(mesh, 'hungry', 1, 1, { harness: shell('cat /dev/zero > fill; exit 5') });
        expect(hungry?.outcome).to.equal(Outcome.HARNESS_ERROR);
        const [next] = await run(mesh, 'next', 1, 1);
        expect(next?.outcome, next?.failure?.message).to.equal(Outcome.COMPLETED);
        await leavesNothing(mesh.nodeFolder, [MARK]);
      } finally {
        execFileSync('umount', ['-l', dataDir]);
        rmSync(dataDir, { recursive: true });
      }
    });
  }
});

/** To the last byte. */
function fill(path: string): void {
  for (const size of [65_536, 4_096, 1]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' });
    } catch {
      // Full at this size.
    }
  }
}
