// npm run bench: start, memory and the cost of a session, on this machine. Prints a table; docs/benchmarks.md keeps one.
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import type { Client } from '@connectrpc/connect';
import { SERVICES } from '../../clients/cli/services.ts';
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { readTopology } from '../../services/common/config/topology.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const { values: flags } = parseArgs({
  options: {
    sessions: { type: 'string', default: '300' },
    rounds: { type: 'string', default: '30' },
    engine: { type: 'string', default: 'sglang' },
    parallel: { type: 'string', default: '32' },
  },
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
const row = (what: string, value: string): void => say(`| ${what} | ${value} |`);

const status = (pid: number, file: string, key: string): number =>
  Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/${file}`, 'utf8'))?.[1] ?? 0) /
  1024;

/** CPU that a process has used, in ms; the kernel counts in hundredths of a second. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const cpuOfAll = (mesh: Mesh): Map<string, number> =>
  new Map([...mesh.pids].map(([name, pid]) => [name, cpuMs(pid)]));

/** Busy time of all cores since the machine started, in ms. */
function busyMs(): number {
  const times = cpus().map(({ times: { user, nice, sys, irq } }) => user + nice + sys + irq);
  return times.reduce((sum, time) => sum + time, 0);
}

function memory(mesh: Mesh, when: string): void {
  const pids = SERVICES.map((name) => mesh.pids.get(name) ?? 0);
  const sum = (file: string, key: string): string =>
    pids.reduce((total, pid) => total + status(pid, file, key), 0).toFixed(0);
  const each = SERVICES.map(
    (name, i) => `${name} ${status(pids[i] ?? 0, 'status', 'VmRSS').toFixed(0)}`,
  ).join(', ');
  row(
    `six services, ${when}`,
    `RSS ${sum('status', 'VmRSS')} MiB, PSS ${sum('smaps_rollup', 'Pss')} MiB (${each})`,
  );
}

/** What sandbox and harness take without the mesh around them: make it, three HTTP calls by curl, remove it. */
async function bareSandbox(mesh: Mesh, rounds: number): Promise<number> {
  const node = readTopology(mesh.topologyFile).gateway.nodes[0];
  const runtimes = createServiceClient(RuntimeService, `http://127.0.0.1:${node?.runtime_prewarm_port}`);
  const times: number[] = [];
  for (let i = 0; times.length < rounds; i++) {
    const started = performance.now();
    // The scheduler knows no such session and revokes the sandbox at the next heartbeat: such a round is left out.
    if (await bareRound(runtimes, `bare-${i}`).catch(() => false)) times.push(performance.now() - started);
  }
  return median(times);
}

async function bareRound(runtimes: Client<typeof RuntimeService>, sessionId: string): Promise<boolean> {
  const owner = { sessionId, attempt: 1, purpose: 'run' };
  const { runtime } = await runtimes.acquireRuntime({ spec: {}, owner, ttl: { seconds: 60n } });
  const runtimeId = runtime?.runtimeId ?? '';
  const script = `for i in $(seq 3); do curl -sS --fail -o reply ${runtime?.proxyUrl}/healthz; done`;
  let exitCode = -1;
  for await (const { event } of runtimes.exec({ runtimeId, argv: ['sh', '-c', script], proxyAccess: true })) {
    if (event.case === 'result') exitCode = event.value.exitCode;
  }
  await runtimes.releaseRuntime({ runtimeId });
  return exitCode === 0;
}

async function main(): Promise<void> {
  const parallel = Number(flags.parallel);
  const rounds = Number(flags.rounds);
  say(
    `${cpus().length} cores, Node ${process.version}, engine dialect ${flags.engine}\n\n| what | value |\n|---|---|`,
  );
  const options = {
    runSlots: parallel,
    prepareSlots: parallel,
    evaluateSlots: parallel,
    engine: flags.engine as 'sglang' | 'vllm',
  };
  const started = performance.now();
  await using mesh = await startMesh(options);
  row(
    'scripted engine, nats-server and six services, fresh state, to ready',
    `${((performance.now() - started) / 1000).toFixed(2)} s`,
  );
  row('of it: nats-server and six services', `${(mesh.servicesReadyMs / 1000).toFixed(2)} s`);
  memory(mesh, 'at rest');

  const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
  const bareMs = await bareSandbox(mesh, rounds);
  const totals: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const at = performance.now();
    await rollout.submitTask({ spec: curlTask(`one-${i}`, 1) });
    const abort = new AbortController();
    for await (const _ of rollout.watchTask({ taskId: `one-${i}` }, { signal: abort.signal }));
    abort.abort();
    totals.push(performance.now() - at);
  }
  row(
    'a session with three instant calls, submit to end, one at a time, median',
    `${median(totals).toFixed(0)} ms`,
  );
  row(
    'of it sandbox and harness alone (make, three HTTP calls by curl, remove), median',
    `${bareMs.toFixed(0)} ms`,
  );
  row('**overhead of the mesh a session, median**', `**${(median(totals) - bareMs).toFixed(0)} ms**`);

  const count = Number(flags.sessions);
  const [cpuBefore, busyBefore] = [cpuOfAll(mesh), busyMs()];
  const at = performance.now();
  await rollout.submitTask({ spec: curlTask('many', count) });
  const sessions = await waitForEnd(rollout, 'many', 600_000);
  const seconds = (performance.now() - at) / 1000;
  const completed = sessions.filter((session) => session.reward === 1).length;
  row(
    `${count} sessions, ${parallel} at once (${completed} completed)`,
    `**${(count / seconds).toFixed(1)} sessions/s**`,
  );
  const each = [...cpuOfAll(mesh)].map(
    ([name, ms]) => [name, (ms - (cpuBefore.get(name) ?? 0)) / count] as const,
  );
  const total = (busyMs() - busyBefore) / count;
  const rest = total - each.reduce((sum, [, ms]) => sum + ms, 0);
  const shown = each.map(([name, ms]) => `${name} ${ms.toFixed(1)}`).join(', ');
  row(
    'CPU a session',
    `${total.toFixed(0)} ms: ${shown}, sandboxes, nats-server and the rest ${rest.toFixed(0)}`,
  );
  memory(mesh, 'after it');
}

await main();
