// Tells the scheduler how the policy's engines bear what they have, where the node's sessions are to follow it.
import { create, toBinary } from '@bufbuild/protobuf';
import { EnginePressureSchema } from '../../../gen/ts/polar/event/v1/engine_pressure_pb.js';
import { sleep } from '../../common/clock.ts';
import { ENGINE_PRESSURE_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { engineTellsNoLoad } from '../events.ts';
import type { Pool } from './pool.ts';

export interface PressureOptions {
  readonly bus: Bus;
  readonly log: Logger;
  readonly nodeId: string;
  /** The policy's. */
  readonly pool: Pool;
  readonly signal: AbortSignal;
}

/** Until the signal aborts. What an engine does not tell counts as no load. */
export async function tellPressure({ bus, log, nodeId, pool, signal }: PressureOptions): Promise<void> {
  const silent = new Set<string>();
  while (!signal.aborted) {
    const members = await pool.found(signal).catch(() => []);
    const loads = await Promise.all(
      members.map(async ({ engine }) => {
        const load = await engine.load(signal);
        if (load === undefined && !silent.has(engine.name) && !signal.aborted) {
          engineTellsNoLoad(log, engine.name);
          silent.add(engine.name);
        }
        return load;
      }),
    );
    const callsWaiting = loads.reduce((sum, load) => sum + (load?.callsWaiting ?? 0), pool.waiting);
    const cacheUse = Math.max(0, ...loads.map((load) => load?.cacheUse ?? 0));
    const told = create(EnginePressureSchema, { nodeId, callsWaiting, cacheUse });
    if (signal.aborted || bus.nc.isClosed()) return;
    bus.nc.publish(subjects.pressure(nodeId), toBinary(EnginePressureSchema, told));
    await sleep(ENGINE_PRESSURE_MS, signal);
  }
}
