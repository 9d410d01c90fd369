// What a mesh keeps of sessions that have ended: memory in use after all garbage is collected, and memory that is resident.
import { setTimeout as sleep } from 'node:timers/promises';
import { SERVICES, type ServiceName } from '../../../clients/cli/services.ts';
import { freePort } from '../../support/nats.ts';
import { say } from '../scheduler/machine.ts';
import { groupsMeter } from './meter.ts';
import { type MeasuredMesh, openMesh } from './throughput.ts';

/** By process, in bytes; resident in MiB. */
export interface Look {
  readonly ended: number;
  readonly inUse: ReadonlyMap<string, number>;
  readonly residentMiB: ReadonlyMap<string, number>;
}

/** nats-server lets go of the blocks of its streams so long after the last write. */
const REST_MS = 45_000;
const AT_ONCE = 200;

/** A look after each of these numbers of sessions. */
export async function measureMemory(looks: readonly number[]): Promise<Look[]> {
  const profPort = await freePort();
  await using mesh = await openMesh({
    ...{ runtime: { backend: 'process' }, meter: groupsMeter },
    ...{ nodeFlags: ['--inspect=127.0.0.1:0'], natsConfig: `prof_port: ${profPort}` },
  });
  const found: Look[] = [];
  for (const wanted of looks) {
    found.push(await lookAfter(mesh, wanted, profPort));
    say(`after ${wanted}: ${[...(found.at(-1)?.inUse ?? [])].map(([name, bytes]) => `${name} ${bytes}`)}`);
  }
  return found;
}

async function lookAfter(mesh: MeasuredMesh, wanted: number, profPort: number): Promise<Look> {
  let residentMiB: ReadonlyMap<string, number> = new Map();
  while (mesh.ended < wanted) {
    ({ residentMiB } = await mesh.measure(Math.min(AT_ONCE, wanted - mesh.ended)));
  }
  await sleep(REST_MS);
  const inUse = new Map<string, number>();
  for (const name of SERVICES) inUse.set(name, await heapOf(mesh, name));
  inUse.set('nats-server', await natsHeap(profPort));
  return { ended: mesh.ended, residentMiB, inUse };
}

interface Reply {
  readonly id: number;
  readonly result: { readonly result?: { readonly value?: number } };
}

/** Live objects, and what they hold outside of the heap. */
async function heapOf({ mesh }: MeasuredMesh, name: ServiceName): Promise<number> {
  const url = /ws:\/\/\S+/.exec(mesh.log(name))?.[0];
  if (url === undefined) throw new Error(`${name} has no inspector`);
  const socket = new WebSocket(url);
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
  let asked = 0;
  const ask = async (method: string, params = {}): Promise<Reply> => {
    const id = ++asked;
    const { promise, resolve } = Promise.withResolvers<Reply>();
    socket.addEventListener('message', ({ data }) => {
      const reply = JSON.parse(String(data)) as Reply;
      if (reply.id === id) resolve(reply);
    });
    socket.send(JSON.stringify({ id, method, params }));
    return await promise;
  };
  // What finalizers let go is collected by the next one.
  for (let i = 0; i < 3; i++) await ask('HeapProfiler.collectGarbage');
  const expression = '(({heapUsed, external}) => heapUsed + external)(process.memoryUsage())';
  const { result } = await ask('Runtime.evaluate', { expression });
  socket.close();
  return result.result?.value ?? Number.NaN;
}

/** Go's profile of the heap says it at its end, after a collection. */
async function natsHeap(profPort: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${profPort}/debug/pprof/heap?gc=1&debug=1`);
  return Number(/^# HeapAlloc = (\d+)/m.exec(await response.text())?.[1]);
}
