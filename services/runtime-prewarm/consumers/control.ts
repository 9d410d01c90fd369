// Revocations: the quick way. Not stored, so the answer to the heartbeat repeats them.
import { once } from 'node:events';
import { fromBinary } from '@bufbuild/protobuf';
import { RevokeSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { subjects } from '../../common/nats/subjects.ts';
import type { RuntimePrewarmContext } from '../context.ts';

/** Runs until the signal aborts. */
export async function consumeControl(ctx: RuntimePrewarmContext, signal: AbortSignal): Promise<void> {
  const { bus, runtimes, log, config } = ctx;
  const subscription = bus.nc.subscribe(subjects.control(config.node.id), {
    callback: (error, message) => {
      try {
        if (error !== null) throw error;
        runtimes.revoke(fromBinary(RevokeSchema, message.data).attempts);
      } catch (reason) {
        log.warn({ err: reason }, 'control message not understood');
      }
    },
  });
  if (!signal.aborted) await once(signal, 'abort');
  subscription.unsubscribe();
}
