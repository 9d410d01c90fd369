// The floor's loop, a process of its own: argv is its options, each message a number of sessions; it answers with their
// seconds, and first with the folder of its data.
import process from 'node:process';
import { Limit } from '../../../services/runtime-prewarm/host/limit.ts';
import { type BareNode, type BareNodeOptions, openBareNode, orderOf } from './bare-node.ts';

export interface LoopOptions extends BareNodeOptions {
  readonly runtime: { readonly backend: string; readonly image?: string };
  readonly command: string;
  readonly atOnce: number;
}

export type LoopAnswer = { readonly folder: string } | { readonly seconds: number };

const SESSION_MS = 60_000;

const options = JSON.parse(process.argv[2] ?? '') as LoopOptions;
const node = await openBareNode(options);
const answer = (one: LoopAnswer): void => void process.send?.(one);

process.on('message', async (sessions: number) => answer({ seconds: await loop(sessions) }));
process.once('disconnect', () => void node[Symbol.asyncDispose]());
answer({ folder: node.folder });

async function loop(sessions: number): Promise<number> {
  let next = 0;
  const one = async (): Promise<void> => {
    for (let i = next++; i < sessions; i = next++) await session(node, `floor-${i}`);
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: options.atOnce }, one));
  return (performance.now() - begun) / 1000;
}

async function session({ runtimes }: BareNode, name: string): Promise<void> {
  const { signal } = new AbortController();
  const sandbox = await runtimes.acquire(orderOf(options.runtime, name), signal);
  const env = { OPENAI_BASE_URL: `${sandbox.proxyUrl}/v1`, OPENAI_API_KEY: 'none' };
  const { exitCode } = await sandbox.exec(
    {
      ...{ argv: ['sh', '-c', options.command], cwd: sandbox.plan.workdir, env, stdin: new Uint8Array() },
      ...{ mounts: [], proxyAs: name, limit: new Limit(SESSION_MS) },
    },
    () => {},
    signal,
  );
  await runtimes.release(sandbox.id);
  if (exitCode !== 0) throw new Error(`${name} ended with exit code ${exitCode}`);
}
