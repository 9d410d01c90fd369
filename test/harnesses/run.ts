// npm run test:harnesses [-- codex pi]: each harness solves the calculator task in a bubblewrap sandbox, through a whole
// mesh, against the scripted engine. Writes what was run to docs/harnesses.md where all were.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { create } from '@bufbuild/protobuf';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { HarnessSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { readTopology } from '../../services/common/config/topology.ts';
import { HARNESS_INSTALL_MS } from '../../services/common/limits.ts';
import { HARNESSES } from '../../services/common/specs/catalogue.ts';
import { readTaskFile } from '../../services/common/specs/task-file.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { waitForEnd } from '../support/tasks.ts';

const ROOT = join(import.meta.dirname, '../..');
const PAGE = join(ROOT, 'docs/harnesses.md');
const TABLE = /(?<=<!-- table: run -->\n)[\s\S]*?(?=<!-- end -->)/;

const COMPLAINT_CHARS = 2_000;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

interface Ran {
  readonly name: string;
  readonly session: Session;
  readonly transcripts: number;
  /** The end of what it wrote on standard error. */
  readonly complaint: string;
}

/** The example's script with absolute paths, as some harnesses take no others. */
function scriptIn(folder: string): string {
  const text = readFileSync(join(ROOT, 'examples/calculator/script.yaml'), 'utf8');
  const file = join(folder, 'script.yaml');
  writeFileSync(file, text.replaceAll(/(path|read): (\w+\.py)$/gm, '$1: /polar/session/workspace/$2'));
  return file;
}

/** Sample 0 is the variant of the script that edits the file and solves the task. */
async function solve(mesh: Mesh, name: string): Promise<Ran> {
  const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
  const shell = name === 'shell';
  const spec = readTaskFile(join(ROOT, `examples/calculator/task${shell ? '-shell' : ''}.yaml`));
  spec.taskId = `calculator-${name}`;
  spec.numSamples = 1;
  if (!shell) spec.harness = create(HarnessSpecSchema, { name, modelName: 'scripted-qwen3' });
  await rollout.submitTask({ spec });
  const [session] = await waitForEnd(rollout, spec.taskId, HARNESS_INSTALL_MS);
  if (session === undefined) throw new Error(`no session of ${spec.taskId}`);
  return { name, session, ...(await leftBy(mesh, session)) };
}

async function leftBy(mesh: Mesh, { sessionId }: Session): Promise<Pick<Ran, 'transcripts' | 'complaint'>> {
  const [node] = readTopology(mesh.topologyFile).gateway.nodes;
  const client = createServiceClient(HarnessService, `http://127.0.0.1:${node?.harness_executor_port}`);
  const kept = await client.listSessionArtifacts({ sessionId }).catch(() => undefined);
  const logs = await client.getSessionLogs({ sessionId }).catch(() => undefined);
  return {
    transcripts: kept?.artifacts.filter(({ transcript }) => transcript).length ?? 0,
    complaint: Buffer.from(logs?.stderr ?? '')
      .toString()
      .slice(-COMPLAINT_CHARS),
  };
}

const isSolved = ({ session }: Ran): boolean => session.outcome === Outcome.COMPLETED && session.reward === 1;

function rowOf(ran: Ran): string {
  const { name, session, transcripts } = ran;
  const seconds = (Number(session.times?.runMs ?? 0n) / 1000).toFixed(1);
  const outcome = `${Outcome[session.outcome].toLowerCase()}, reward ${session.reward ?? 'none'}`;
  return `| \`${name}\` | ${outcome} | ${session.stats?.calls ?? 0} | ${session.stats?.traces ?? 0} | ${seconds} s | ${transcripts} |\n`;
}

function renew(all: readonly Ran[]): void {
  const day = new Date().toISOString().slice(0, 10);
  const head = `Last run: ${day}.\n\n| harness | outcome | calls | traces | run | transcript files |\n|---|---|---|---|---|---|\n`;
  const page = readFileSync(PAGE, 'utf8');
  writeFileSync(PAGE, page.replace(TABLE, head + all.map(rowOf).join('')));
}

async function main(): Promise<boolean> {
  const asked = process.argv.slice(2);
  const unknown = asked.find((name) => !(HARNESSES as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`no harness ${unknown}: ${HARNESSES.join(', ')}`);
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-harnesses-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const engineFlags = ['--script', scriptIn(folder)];
  const mesh = stack.use(await startMesh({ engineFlags, defaultBackend: 'bubblewrap' }));
  const all: Ran[] = [];
  // One after the other: the times are those of a harness alone.
  for (const name of asked.length === 0 ? HARNESSES : asked) {
    const ran = await solve(mesh, name);
    all.push(ran);
    say(`${isSolved(ran) ? 'ok    ' : 'FAILED'} ${rowOf(ran).trim()}`);
    if (!isSolved(ran)) say(`${ran.session.failure?.message ?? ''}\n${ran.complaint}`);
  }
  if (asked.length === 0) renew(all);
  return all.every(isSolved);
}

if (!(await main())) process.exitCode = 1;
