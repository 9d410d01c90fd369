// npm run bench:lost-node: a node of three stands still with its sessions running. How long until all of them run on other
// nodes, and until it has let go of them when it goes on. Writes docs/benchmarks.md.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { leaderClient } from '../../../clients/cli/leader-client.ts';
import { type Session, SessionState } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createPlainClient } from '../../../services/common/client.ts';
import { type Cluster, type ClusterNode, startCluster } from '../../chaos/cluster.ts';
import { freeze } from '../../chaos/freeze.ts';
import { eventually } from '../../support/eventually.ts';
import { curlTask } from '../../support/tasks.ts';
import { writePart } from '../proxy/report.ts';
import { distributionOf } from '../proxy/statistics.ts';
import { aboutMachine, say } from './machine.ts';

const { values: flags } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, write: { type: 'boolean', default: true } },
  allowNegative: true,
});

const SESSIONS = 6;
const RUN_SLOTS = 6;
const LIMIT_MS = 10_000;

interface Round {
  readonly elsewhereMs: number;
  readonly fencedMs: number;
}

async function lose(cluster: Cluster, node: ClusterNode, taskId: string): Promise<Round> {
  const client = leaderClient(cluster.schedulerUrls);
  const harness = { name: 'shell', modelName: 'm', command: { command: 'sleep 600' } };
  await client.submitTask({ spec: curlTask(taskId, SESSIONS, 1, { harness }) });
  const sessions = async (): Promise<Session[]> => (await client.listSessions({ taskId })).sessions;
  const allRun = async (): Promise<boolean> =>
    (await sessions()).every(({ state }) => state === SessionState.RUNNING);
  const there = async (): Promise<Session[]> => (await sessions()).filter(({ nodeId }) => nodeId === node.id);
  await eventually('all run', allRun);
  const hit = (await there()).length;
  if (hit === 0) throw new Error(`no session runs on ${node.id}`);
  const stoppedMs = performance.now();
  const frozen = freeze(Object.values(node.services).flatMap(({ pid }) => pid ?? []));
  await eventually('all run elsewhere', async () => (await there()).length === 0 && (await allRun()));
  const elsewhereMs = performance.now() - stoppedMs;
  const thawedMs = performance.now();
  await frozen.thaw();
  const runtimes = createPlainClient(RuntimeService, node.runtimesUrl);
  const held = async (): Promise<number> =>
    (await runtimes.listRuntimes({})).runtimes.filter(({ owner }) => owner?.sessionId).length;
  await eventually('it has let go', async () => (await held()) === 0);
  const fencedMs = performance.now() - thawedMs;
  await client.cancelTask({ taskId });
  await eventually('all are ended', async () =>
    (await sessions()).every(({ state }) => state === SessionState.ENDED),
  );
  return { elsewhereMs, fencedMs };
}

await using cluster = await startCluster({ runSlots: RUN_SLOTS });
const rounds: Round[] = [];
while (rounds.length < Number(flags.rounds)) {
  const node = cluster.nodes[rounds.length % cluster.nodes.length] as ClusterNode;
  const round = await lose(cluster, node, `lost-${rounds.length}`);
  say(
    `${node.id}: elsewhere ${(round.elsewhereMs / 1000).toFixed(2)} s, let go ${(round.fencedMs / 1000).toFixed(2)} s`,
  );
  rounds.push(round);
}
const row = (what: string, samples: readonly number[]): string => {
  const { p50, max } = distributionOf(samples);
  return `| ${what} | ${(p50 / 1000).toFixed(2)} | ${(max / 1000).toFixed(2)} | ${max <= LIMIT_MS ? 'yes' : '**no**'} |`;
};
const text = [
  `${aboutMachine()}. ${rounds.length} losses of one node of three, ${SESSIONS} sessions running.`,
  [
    '| from | p50 s | max s | within 10 s |',
    '|---|--:|--:|---|',
    row(
      'the node stands still, to all its sessions running elsewhere',
      rounds.map(({ elsewhereMs }) => elsewhereMs),
    ),
    row(
      'it goes on, to its sandboxes being gone',
      rounds.map(({ fencedMs }) => fencedMs),
    ),
  ].join('\n'),
].join('\n\n');
say(text);
if (flags.write) writePart(join(import.meta.dirname, '../../../docs/benchmarks.md'), 'lost-node', text);
