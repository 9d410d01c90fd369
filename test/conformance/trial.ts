// One CLI on one case: what it did in its sandbox, and what the proxy recorded of it.
import { join } from 'node:path';
import process from 'node:process';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
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
const LOOK_MS = 20_000;
const LEASE_MS = 1_200_000;
/** The proxy's port in a sandbox. */
const PROXY_URL = 'http://127.0.0.1:4141';

export interface Seen {
  /** Of each command. */
  readonly commands: readonly { readonly exitCode: number; readonly out: string; readonly err: string }[];
  /** Files of the workspace that the case names. */
  readonly files: Readonly<Record<string, string | null>>;
  readonly records: readonly Completion[];
  /** The count that the proxy gave when it closed the session. */
  readonly counted: number;
  readonly traces: number;
  /** What laws.py finds wrong. */
  readonly breaches: readonly string[];
  readonly ms: number;
}

export async function runTrial(cli: Cli, one: Case, { folder, entry }: Installed, site: Site): Promise<Seen> {
  const { proxy, node } = site;
  const session = `${cli.name}-${one.name}`;
  const capability = await proxy.admit(session);
  const runtimeId = await node.acquire({ session, ttlMs: LEASE_MS });
  const target = `${HARNESS_MOUNT}/${cli.name}`;
  const asked = (n: number): Ask => ({
    prompt: promptOf(cli, one, n),
    resume: n > 0,
    url: `${PROXY_URL}/s/${capability}`,
    capability,
    case: one.name,
  });
  try {
    await putFiles(site, runtimeId, cli.files(asked(0)));
    const started = performance.now();
    const commands: Seen['commands'][number][] = [];
    for (const n of one.commands.keys()) {
      const { argv, env, stdin } = cli.command(asked(n), `${target}/${entry}`);
      const { exitCode, out, err } = await node.sh(runtimeId, '', {
        argv,
        env: { HOME, TERM: 'dumb', ...env },
        stdin: Buffer.from(stdin ?? ''),
        mounts: [
          { source: folder, target },
          { source: NODE_DIR, target: NODE_MOUNT },
        ],
        proxyAccess: true,
        timeoutMs: COMMAND_MS,
      });
      commands.push({ exitCode, out, err });
    }
    const ms = performance.now() - started;
    const files = await readFiles(site, runtimeId, Object.keys(one.expected.files));
    return { commands, files, ms, ...(await recorded(site, session)) };
  } finally {
    await node.runtimes.releaseRuntime({ runtimeId });
  }
}

/** The Node.js that runs this. */
const NODE_DIR = join(process.execPath, '../..');

async function putFiles(
  { node }: Site,
  runtimeId: string,
  home: Readonly<Record<string, string>>,
): Promise<void> {
  const files = Object.entries(home).map(([path, content]) => [`${HOME}/${path}`, content] as const);
  await node.runtimes.putFiles({
    runtimeId,
    files: [...files, [`${WORKSPACE}/greeting.txt`, 'good morning\n'] as const].map(([path, content]) => ({
      target: path,
      content: Buffer.from(content),
    })),
  });
}

async function readFiles(
  { node }: Site,
  runtimeId: string,
  names: readonly string[],
): Promise<Record<string, string | null>> {
  const files: Record<string, string | null> = {};
  for (const name of names) {
    const { exitCode, out } = await node.sh(runtimeId, `cat ${name}`, { timeoutMs: LOOK_MS });
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
