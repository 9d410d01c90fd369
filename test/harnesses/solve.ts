// One harness on the calculator task, in a mesh that runs: what came of it, and what it left.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { HarnessSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { HARNESS_INSTALL_MS } from '../../services/common/limits.ts';
import { readTaskFile } from '../../services/common/specs/task-file.ts';
import { adapterOf } from '../../services/harness-executor/adapters/index.ts';
import type { Mesh } from '../support/mesh.ts';
import { needsNewer } from '../support/newer-debian.ts';
import { waitForEnd } from '../support/tasks.ts';
import type { Place } from './places.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/calculator');
const COMPLAINT_CHARS = 2_000;

export interface Ran {
  readonly harness: string;
  /** The backend's name. */
  readonly place: string;
  readonly session: Session;
  /** Of the harness; undefined: it did not run. */
  readonly exitCode: number | undefined;
  readonly transcripts: number;
  /** The end of what it wrote on standard error. */
  readonly complaint: string;
}

/** The example's script with absolute paths, as some harnesses take no others; the file it is written to. */
export function scriptIn(folder: string): string {
  const text = readFileSync(join(EXAMPLE, 'script.yaml'), 'utf8');
  const file = join(folder, 'script.yaml');
  writeFileSync(file, text.replaceAll(/(path|read): (\w+\.py)$/gm, '$1: /polar/session/workspace/$2'));
  return file;
}

/** Sample 0 is the variant of the script that edits the file and solves the task. */
export async function solve(mesh: Mesh, harness: string, place: Place): Promise<Ran> {
  const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
  const shell = harness === 'shell';
  const spec = readTaskFile(join(EXAMPLE, `task${shell ? '-shell' : ''}.yaml`));
  spec.taskId = `calculator-${harness}`;
  spec.numSamples = 1;
  const isNewer = await needsNewer(adapterOf(harness));
  Object.assign(spec.runtime ?? {}, isNewer ? place.newer : place.runtime);
  if (!shell) spec.harness = create(HarnessSpecSchema, { name: harness, modelName: 'scripted-qwen3' });
  await rollout.submitTask({ spec });
  const [session] = await waitForEnd(rollout, spec.taskId, HARNESS_INSTALL_MS);
  if (session === undefined) throw new Error(`no session of ${spec.taskId}`);
  return { harness, place: place.name, session, ...(await leftBy(mesh, session)) };
}

async function leftBy(
  mesh: Mesh,
  { sessionId }: Session,
): Promise<Pick<Ran, 'exitCode' | 'transcripts' | 'complaint'>> {
  const client = createServiceClient(HarnessService, mesh.harnessUrl);
  const kept = await client.listSessionArtifacts({ sessionId }).catch(() => undefined);
  const logs = await client.getSessionLogs({ sessionId }).catch(() => undefined);
  return {
    exitCode: logs?.exitCode,
    transcripts: kept?.artifacts.filter(({ transcript }) => transcript).length ?? 0,
    complaint: Buffer.from(logs?.stderr ?? '')
      .toString()
      .slice(-COMPLAINT_CHARS),
  };
}

export const isSolved = ({ session, exitCode }: Ran): boolean =>
  session.outcome === Outcome.COMPLETED && session.reward === 1 && exitCode === 0;
