// The same traces as JSON over HTTP, each server as a process.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import type { Trajectory } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { unpackFloats, unpackIds } from '../../../services/common/columns.ts';
import { binOf, installPeers } from '../proxy/install.ts';
import { say } from '../scheduler/machine.ts';
import { type Consumed, consume } from './consume.ts';
import { type Shape, trajectoryOf } from './traces.ts';

const FOLDER = join(import.meta.dirname, 'peers');
const WARM_GROUPS = 2;

export const PEERS = {
  'node:http': (): string[] => [process.execPath, join(FOLDER, 'node-http.ts')],
  FastAPI: (): string[] => {
    installPeers('peers', say);
    return [binOf('peers', 'python'), join(FOLDER, 'fastapi_server.py')];
  },
};

/** Groups of a shape as JSON. Numbers are those of the columns; a logprob is written as engines write it, a double. */
export const groupsAsJson = (shape: Shape, count: number): string =>
  JSON.stringify(
    Array.from({ length: count }, (_, group) => ({
      trajectories: Array.from({ length: shape.sessions }, (_, i) =>
        plain(trajectoryOf(shape, group * shape.sessions + i), i % 2),
      ),
    })),
  );

const plain = ({ sessionId, traces }: Trajectory, reward: number): object => ({
  session_id: sessionId,
  reward,
  traces: traces.map(({ promptIds, responseIds, lossMask, logprobs }) => ({
    prompt_ids: [...unpackIds(promptIds)],
    response_ids: [...unpackIds(responseIds)],
    loss_mask: [...lossMask],
    logprobs: [...unpackFloats(logprobs)],
  })),
});

/** Let a consumer read that many groups of a peer, which serves those of the file in turn. */
export async function measurePeer(name: keyof typeof PEERS, file: string, groups: number): Promise<Consumed> {
  const [command = '', ...args] = PEERS[name]();
  const child = spawn(command, [...args, file], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [port] = (await once(child.stdout, 'data')) as [Buffer];
    return await consume('json_consumer.py', [port.toString().trim(), WARM_GROUPS, groups], {
      server: child.pid ?? 0,
    });
  } finally {
    await ended(child);
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill();
  await exited;
}
