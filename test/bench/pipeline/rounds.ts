// Floor and mesh in turns. A machine that others share is not equally quick all the time, so that only what was measured
// one right after the other is compared: each number of sessions with the floors before and after it.
import { say } from '../scheduler/machine.ts';
import type { Floor, Throughput } from './floor.ts';
import { type Cpu, totalMs } from './meter.ts';
import type { MeasuredMesh, MeshThroughput } from './throughput.ts';

export interface Pair {
  readonly floor: Throughput;
  readonly mesh: MeshThroughput;
}

export interface RoundsOptions {
  /** Sessions submitted at once, one after the other, in each round. */
  readonly sizes: readonly number[];
  readonly rounds: number;
  /** Sessions of a floor. */
  readonly floor: number;
  /** So that code is compiled and connections are open. */
  readonly warmUp: number;
}

/** All pairs, in the order in which they were measured. */
export async function measureRounds(
  floor: Floor,
  mesh: MeasuredMesh,
  options: RoundsOptions,
): Promise<Pair[]> {
  await floor.measure(options.warmUp);
  await mesh.measure(options.warmUp);
  const pairs: Pair[] = [];
  let before = await floor.measure(options.floor);
  for (let round = 0; round < options.rounds; round++) {
    for (const sessions of options.sizes) {
      const figures = await mesh.measure(sessions);
      const after = await floor.measure(options.floor);
      const pair = { floor: between(before, after), mesh: figures };
      pairs.push(pair);
      tell(pair);
      before = after;
    }
  }
  return pairs;
}

function between(one: Throughput, other: Throughput): Throughput {
  const half = (pick: (cpu: Cpu) => number): number => (pick(one.cpu) + pick(other.cpu)) / 2;
  return {
    perSecond: (one.perSecond + other.perSecond) / 2,
    cpu: {
      own: half(({ own }) => own),
      engine: half(({ engine }) => engine),
      sandboxes: half(({ sandboxes }) => sandboxes),
    },
  };
}

function tell({ floor, mesh }: Pair): void {
  const of = ({ perSecond, cpu }: Throughput): string =>
    `${perSecond.toFixed(1)} sessions/s, CPU ${totalMs(cpu).toFixed(1)} ms, own ${cpu.own.toFixed(1)} ms`;
  say(`${mesh.sessions} at once: ${of(mesh)}; floor: ${of(floor)}`);
}
