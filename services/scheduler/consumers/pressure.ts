// What LLM proxies tell of their engines: the sessions that may run against one follow it.
import { fromBinary } from '@bufbuild/protobuf';
import { EnginePressureSchema } from '../../../gen/ts/polar/event/v1/engine_pressure_pb.js';
import { subjects } from '../../common/nats/subjects.ts';
import type { SchedulerContext } from '../context.ts';
import * as events from '../events.ts';

/** Listens until the context's signal aborts. */
export function hearPressure({ bus, board, engines, log, signal }: SchedulerContext): void {
  const hear = (bytes: Uint8Array): void => {
    const { nodeId, ...pressure } = fromBinary(EnginePressureSchema, bytes);
    const changed = engines.told(nodeId, pressure, performance.now(), (id) => board.nodes.get(id));
    if (changed !== undefined) events.engineLimitChanged(log, changed, pressure);
  };
  const subscription = bus.nc.subscribe(subjects.anyPressure, {
    callback: (error, message) => {
      if (error !== null || signal.aborted) return;
      try {
        hear(message.data);
      } catch (problem) {
        events.pressureInvalid(log, problem);
      }
    },
  });
  signal.addEventListener('abort', () => subscription.unsubscribe(), { once: true });
}
