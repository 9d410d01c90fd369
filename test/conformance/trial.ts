// One CLI on one case: what it did in its sandbox, and what the proxy recorded of it.
import { join } from 'node:path';
import process from 'node:process';
import { create } from '@bufbuild/protobuf';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { AttemptRefSchema, RunWorkSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { execCollected } from '../../services/common/exec.ts';
import { type Launch, launchOf } from '../../services/harness-executor/runs/launch.ts';
import { sandboxPython } from '../../services/harness-executor/runs/sandbox-python.ts';
import { build } from '../../services/reconstructor/domain/build.ts';
import { expand } from '../../services/reconstructor/domain/expand.ts';
import { callLine, traceLine } from '../../services/reconstructor/domain/export.ts';
import { breaches } from '../support/laws.ts';
import { type Case, promptOf } from './cases/case.ts';
import { type Cli, MODEL, WORKSPACE } from './clis/cli.ts';
import type { Site } from './site.ts';

const COMMAND_MS = 300_000;
const LOOK_MS = 60_000;
const LEASE_MS = 1_200_000;
/** The proxy as a sandbox sees it. */
const PROXY_URL = 'http://127.0.0.1:4141';
/** The Node.js that runs this. */
const NODE_DIR = join(process.execPath, '../..');

const sessionOf = (cli: Cli, one: Case): string => `${cli.name}-${one.name}`;

export interface CommandEnd {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

export interface Seen {
  /** Of each command. */
  readonly commands: readonly CommandEnd[];
  /** Files of the workspace that the case names; null: not there. */
  readonly files: Readonly<Record<string, string | null>>;
  readonly records: readonly Completion[];
  /** The count that the proxy gave when it closed the session. */
  readonly counted: number;
  readonly traces: number;
  /** What laws.py finds wrong. */
  readonly breaches: readonly string[];
  readonly ms: number;
}

/** A leased sandbox with the CLI in it. */
interface Box {
  readonly site: Site;
  readonly runtimeId: string;
  readonly cli: Cli;
  /** Its folder on this machine. */
  readonly program: string;
  /** Of the sandbox; empty where the CLI needs none. */
  readonly python: string;
}

export async function runTrial(cli: Cli, one: Case, program: string, site: Site): Promise<Seen> {
  const { proxy, node } = site;
  const session = sessionOf(cli, one);
  const capability = await proxy.admit(session);
  const runtimeId = await node.acquire({ session, ttlMs: LEASE_MS });
  const python = (await sandboxPython(node.runtimes, runtimeId, cli.adapter, AbortSignal.timeout(COMMAND_MS)))
    ?.path;
  const box: Box = { site, runtimeId, cli, program, python: python ?? '' };
  const launches = one.commands.map((_, n) => launchIn(box, one, n, capability));
  try {
    await putFiles(box, launches[0] as Launch);
    const started = performance.now();
    const commands: CommandEnd[] = [];
    for (const [n, launch] of launches.entries()) commands.push(await runCli(box, launch, n > 0));
    const ms = performance.now() - started;
    const files = await readFiles(box, Object.keys(one.expected.files));
    return { commands, files, ms, ...(await recorded(site, session)) };
  } finally {
    await node.runtimes.releaseRuntime({ runtimeId });
  }
}

/** What the harness executor would put into the sandbox and start there. */
function launchIn(
  { runtimeId, cli, program, python }: Box,
  one: Case,
  n: number,
  capability: string,
): Launch {
  const instruction = promptOf(cli, one, n);
  const harness = { name: cli.adapter.name, modelName: MODEL, settings: cli.settings?.(one.name) ?? {} };
  return launchOf(cli.adapter, {
    ref: create(AttemptRefSchema, { sessionId: sessionOf(cli, one), attempt: 1, taskId: one.name }),
    work: create(RunWorkSchema, { runtimeId, proxyUrl: PROXY_URL, instruction, harness }),
    capability,
    installed: program,
    python,
    nodeDir: NODE_DIR,
  });
}

async function runCli(
  { site, runtimeId, cli }: Box,
  { command }: Launch,
  resume: boolean,
): Promise<CommandEnd> {
  const { argv } = command;
  const request = {
    ...command,
    runtimeId,
    argv: resume ? cli.resumed(argv) : argv,
    proxyAccess: true,
    timeoutMs: COMMAND_MS,
  };
  const signal = AbortSignal.timeout(COMMAND_MS + LOOK_MS);
  const { stdout, stderr, result } = await execCollected(site.node.runtimes, request, signal);
  return {
    exitCode: result.exitCode,
    out: Buffer.from(stdout).toString(),
    err: Buffer.from(stderr).toString(),
  };
}

/** The CLI's own files, and what its work begins with. */
async function putFiles({ site, runtimeId, cli }: Box, { files }: Launch): Promise<void> {
  const more = [...(cli.files ?? []), { path: `${WORKSPACE}/greeting.txt`, content: 'good morning\n' }];
  const put = more.map(({ path, content }) => ({ target: path, content: Buffer.from(content) }));
  await site.node.runtimes.putFiles({ runtimeId, files: [...files, ...put] });
}

async function readFiles(
  { site, runtimeId }: Box,
  names: readonly string[],
): Promise<Record<string, string | null>> {
  const files: Record<string, string | null> = {};
  for (const name of names) {
    const { exitCode, out } = await site.node.sh(runtimeId, `cat ${name}`, { timeoutMs: LOOK_MS });
    files[name] = exitCode === 0 ? out : null;
  }
  return files;
}

async function recorded(
  { proxy }: Site,
  sessionId: string,
): Promise<Pick<Seen, 'records' | 'counted' | 'traces' | 'breaches'>> {
  const { calls: counted } = await proxy.client.closeSession({ sessionId, attempt: 1 });
  const records = await proxy.records(sessionId);
  const calls = expand(records);
  const { traces } = build('prefix_merging', calls);
  const [broken = []] = breaches([{ calls: calls.map(callLine), traces: traces.map(traceLine) }]);
  return { records, counted, traces: traces.length, breaches: broken };
}
