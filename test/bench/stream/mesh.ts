// What the stream is measured on: a real nats-server and a reconstructor process, with trajectories in their store.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { create } from '@bufbuild/protobuf';
import { mainOf, nodeFlagsOf } from '../../../clients/cli/services.ts';
import { type BlobRef, BlobRefSchema } from '../../../gen/ts/polar/common/v1/blob_pb.js';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { type SessionResult, SessionResultSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../../services/common/clock.ts';
import { CONSUMERS, STREAMS } from '../../../services/common/nats/streams.ts';
import { freePort, startNats } from '../../support/nats.ts';
import { Mesh } from '../../support/reconstructor.ts';
import { bytesOf, type Shape, trajectoryOf } from './traces.ts';

const READY_MS = 20_000;
/** Groups are old enough to be packed at once, and too young for the sweep of what was acknowledged days ago. */
const READY_AGO_MS = 10_000;
/** Stored at once while the store is filled. */
const FILLED_AT_ONCE = 32;

export interface StreamMesh extends AsyncDisposable {
  readonly url: string;
  readonly pids: { readonly reconstructor: number; readonly nats: number };
  /** Store the shape's trajectories, announce that many groups of them under the task, and wait until they are packed. */
  fill(taskId: string, shape: Shape, groups: number): Promise<void>;
}

/** `flags` are of the reconstructor's Node.js, beside those that it always has. */
export async function startStreamMesh(flags: readonly string[]): Promise<StreamMesh> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-bench-stream-'));
  const nats = await startNats();
  const port = await freePort();
  const topology = join(folder, 'topology.yaml');
  writeFileSync(
    topology,
    `nats: { url: "${nats.url}" }\nreconstructor: { host: 127.0.0.1, port: ${port} }\n`,
  );
  const child = spawn(
    process.execPath,
    [...nodeFlagsOf('reconstructor'), ...flags, mainOf('reconstructor')],
    {
      stdio: ['pipe', 'ignore', 'inherit'],
      env: { ...process.env, POLAR_TOPOLOGY: topology, POLAR_LIFELINE: 'stdin', POLAR_LOG_LEVEL: 'error' },
    },
  );
  await ready(child, port);
  const mesh = await Mesh.open(nats.url);
  return {
    url: `http://127.0.0.1:${port}`,
    pids: { reconstructor: child.pid ?? 0, nats: nats.pid },
    fill: (taskId, shape, groups) => fill(mesh, taskId, shape, groups),
    async [Symbol.asyncDispose]() {
      await mesh.close();
      await stop(child);
      await nats[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function ready(child: ChildProcess, port: number): Promise<void> {
  for (const until = performance.now() + READY_MS; performance.now() < until; await sleep(20)) {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (answer?.ok) return;
    if (child.exitCode !== null) break;
  }
  throw new Error('the reconstructor was not ready');
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

async function fill(mesh: Mesh, taskId: string, shape: Shape, groups: number): Promise<void> {
  const refs: BlobRef[] = new Array(shape.distinct);
  await atOnce(shape.distinct, async (i) => {
    refs[i] = create(BlobRefSchema, await mesh.blobs.put(bytesOf(trajectoryOf(shape, i))));
  });
  await atOnce(groups, async (group) => {
    const sessions = Array.from({ length: shape.sessions }, (_, i) =>
      result(refs[(group * shape.sessions + i) % shape.distinct] as BlobRef, `${taskId}-${group}-${i}`, i),
    );
    await mesh.announce({
      taskId,
      groupId: `g${group}`,
      sessions,
      readyMs: BigInt(Date.now() - READY_AGO_MS),
    });
  });
  await packed(mesh);
}

/** The reconstructor has looked at all that was announced. */
async function packed({ bus }: Mesh): Promise<void> {
  const { durable_name: name = '' } = CONSUMERS.packs;
  for (;;) {
    const { num_pending: pending, num_ack_pending: unacked } = await bus.jsm.consumers.info(
      STREAMS.trajectories.name,
      name,
    );
    if (pending + unacked === 0) return;
    await sleep(50);
  }
}

const result = (trajectory: BlobRef, sessionId: string, sampleIndex: number): SessionResult =>
  create(SessionResultSchema, {
    sessionId,
    sampleIndex,
    attempt: 1,
    outcome: Outcome.COMPLETED,
    reward: sampleIndex % 2,
    trajectory,
  });

/** Runs `task` for each index, so many at once. */
async function atOnce(count: number, task: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await task(next++);
  };
  await Promise.all(Array.from({ length: FILLED_AT_ONCE }, worker));
}
