// The whole way on real input: the calculator task, the real pi CLI in a bubblewrap sandbox, tokens recorded by the
// proxy, traces rebuilt and graded, read by a Python trainer.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import {
  ExportKind,
  TrajectoryService,
} from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { readTaskFile } from '../../services/common/specs/task-file.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { compareReaders } from '../support/readers.ts';
import { waitForEnd } from '../support/tasks.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
const SCRIPT = join(ROOT, 'examples/calculator/script.yaml');

async function lawsHold(mesh: Mesh, session: Session): Promise<string> {
  const client = createServiceClient(TrajectoryService, mesh.reconstructorUrl);
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-laws-'));
  try {
    for (const kind of [ExportKind.CALLS, ExportKind.TRACES]) {
      const lines: string[] = [];
      for await (const { line } of client.exportSession({ sessionId: session.sessionId, kind }))
        lines.push(line);
      writeFileSync(join(folder, `${kind}.jsonl`), `${lines.join('\n')}\n`);
    }
    const files = [ExportKind.CALLS, ExportKind.TRACES].map((kind) => join(folder, `${kind}.jsonl`));
    const { stdout } = await run('python3', [join(ROOT, 'test/vectors/laws.py'), ...files]);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const engine of ['sglang', 'vllm'] as const) {
  describe(`the calculator task with pi and ${engine}`, function () {
    this.timeout(240_000);
    let mesh: Mesh;
    let sessions: Session[];
    before(async () => {
      mesh = await startMesh({ engine, engineFlags: ['--script', SCRIPT] });
      const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
      const spec = readTaskFile(join(ROOT, 'examples/calculator/task.yaml'));
      spec.taskId = `calculator-${engine}`;
      await rollout.submitTask({ spec });
      sessions = await waitForEnd(rollout, spec.taskId, 180_000);
    });
    after(() => mesh?.[Symbol.asyncDispose]());

    it('ends every session with a graded trajectory; some solve the task and some do not', () => {
      for (const session of sessions) {
        expect(session.outcome, session.failure?.message).to.equal(Outcome.COMPLETED);
        expect(session.harness).to.equal('pi');
        expect(session.stats?.calls).to.be.greaterThan(2);
        expect(session.stats?.traces).to.be.greaterThan(0);
      }
      const rewards = sessions.map((session) => session.reward);
      expect(new Set(rewards)).to.deep.equal(new Set([0, 1]));
    });

    it('trains or masks every sampled token', () => {
      for (const { stats } of sessions) {
        const masked = Object.values(stats?.maskedTokens ?? {}).reduce((sum, count) => sum + count, 0n);
        expect(stats?.sampledTokens).to.equal((stats?.trainedTokens ?? 0n) + masked);
        expect(stats?.trainedTokens).to.not.equal(0n);
      }
    });

    it('exports calls and traces that obey the laws', async () => {
      for (const session of sessions) {
        expect(await lawsHold(mesh, session)).to.contain('all laws hold');
      }
    });

    it('reaches Python, grpc-js and curl as the same bytes', async () => {
      const [batch, ...others] = await compareReaders(mesh.reconstructorUrl, `readers-${engine}`, {
        batches: 1,
      });
      expect(others).to.have.length(0);
      expect(batch?.trajectories).to.have.length(sessions.length);
    });
  });
}
