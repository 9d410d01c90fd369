// One CLI on one case: what it did in its sandbox, and what the proxy recorded of it.
import { join } from 'node:path';
import process from 'node:process';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { execCollected } from '../../services/common/exec.ts';
import { HARNESS_MOUNT, NODE_MOUNT } from '../../services/harness-executor/adapters/adapter.ts';
import { build } from '../../services/reconstructor/domain/build.ts';
import { expand } from '../../services/reconstructor/domain/expand.ts';
import { callLine, traceLine } from '../../services/reconstructor/domain/export.ts';
import { breaches } from '../support/laws.ts';
import { type Case, promptOf } from './cases/case.ts';
import { type Ask, type Cli, HOME, WORKSPACE } from './clis/cli.ts';
import type { Installed } from './installs.ts';
import type { Site } from './site.ts';

const COMMAND_MS = 300_000;
const LOOK_MS = 60_000;
const LEASE_MS = 1_200_000;
/** The proxy as a sandbox sees it. */
const PROXY_URL = 'http://127.0.0.1:4141';
/** The Node.js that runs this. */
const NODE_DIR = join(process.execPath, '../..');

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
  readonly program: Installed;
}

export async function runTrial(cli: Cli, one: Case, program: Installed, site: Site): Promise<Seen> {
  const { proxy, node } = site;
  const session = `${cli.name}-${one.name}`;
  const capability = await proxy.admit(session);
  const runtimeId = await node.acquire({ session, ttlMs: LEASE_MS });
  const box: Box = { site, runtimeId, cli, program };
  const asks = one.commands.map((_, n) => askOf(cli, one, n, capability));
  try {
    await putFiles(box, cli.files(asks[0] as Ask));
    const started = performance.now();
    const commands: CommandEnd[] = [];
    for (const ask of asks) commands.push(await runCli(box, ask));
    const ms = performance.now() - started;
    const files = await readFiles(box, Object.keys(one.expected.files));
    return { commands, files, ms, ...(await recorded(site, session)) };
  } finally {
    await node.runtimes.releaseRuntime({ runtimeId });
  }
}

const askOf = (cli: Cli, one: Case, n: number, capability: string): Ask => ({
  prompt: promptOf(cli, one, n),
  resume: n > 0,
  url: `${PROXY_URL}/s/${capability}`,
  capability,
  case: one.name,
});

async function runCli({ site, runtimeId, cli, program }: Box, ask: Ask): Promise<CommandEnd> {
  const target = `${HARNESS_MOUNT}/${cli.name}`;
  const { argv, env, stdin } = cli.command(ask, `${target}/${program.entry}`);
  const command = {
    runtimeId,
    argv,
    env: { HOME, TERM: 'dumb', ...env },
    stdin: Buffer.from(stdin ?? ''),
    mounts: [
      { source: program.folder, target },
      { source: NODE_DIR, target: NODE_MOUNT },
    ],
    proxyAccess: true,
    timeoutMs: COMMAND_MS,
  };
  const signal = AbortSignal.timeout(COMMAND_MS + LOOK_MS);
  const { stdout, stderr, result } = await execCollected(site.node.runtimes, command, signal);
  return {
    exitCode: result.exitCode,
    out: Buffer.from(stdout).toString(),
    err: Buffer.from(stderr).toString(),
  };
}

/** The CLI's own files, and what its work begins with. */
async function putFiles({ site, runtimeId }: Box, home: Readonly<Record<string, string>>): Promise<void> {
  const files = Object.entries(home).map(([path, content]) => ({
    target: `${HOME}/${path}`,
    content: Buffer.from(content),
  }));
  const greeting = { target: `${WORKSPACE}/greeting.txt`, content: Buffer.from('good morning\n') };
  await site.node.runtimes.putFiles({ runtimeId, files: [...files, greeting] });
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
