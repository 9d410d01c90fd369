// Heartbeats of the nodes: each is answered with the attempts whose sandboxes are nobody's any more.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type AttemptRef,
  HeartbeatReplySchema,
  HeartbeatSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { subjects } from '../../common/nats/subjects.ts';
import type { SchedulerContext } from '../context.ts';
import * as events from '../events.ts';

/** Answers until the context's signal aborts. */
export function answerHeartbeats(ctx: SchedulerContext): void {
  const { bus, log, signal } = ctx;
  const subscription = bus.nc.subscribe(subjects.anyHeartbeat, {
    callback: (error, message) => {
      if (error !== null || signal.aborted) return;
      answer(ctx, message.data).then(
        (reply) => !signal.aborted && message.respond(reply),
        (problem) => events.heartbeatInvalid(log, problem),
      );
    },
  });
  signal.addEventListener('abort', () => subscription.unsubscribe(), { once: true });
}

async function answer(ctx: SchedulerContext, bytes: Uint8Array): Promise<Uint8Array> {
  const revoked = ctx.dispatcher.beat(fromBinary(HeartbeatSchema, bytes));
  const reply = revoked === undefined ? { taken: true } : { revoked: await confirmed(ctx, revoked) };
  return toBinary(HeartbeatReplySchema, create(HeartbeatReplySchema, reply));
}

/** A scheduler that another one has replaced would revoke what that one has started. */
async function confirmed({ stateLog }: SchedulerContext, revoked: AttemptRef[]): Promise<AttemptRef[]> {
  return revoked.length === 0 || (await stateLog.checkEpoch()) ? revoked : [];
}
