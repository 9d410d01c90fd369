// The RPCs while this scheduler leads; before and after, each is refused by what `current` throws.
import type { ConnectRouter, HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';

type Handlers = ServiceImpl<typeof RolloutService>;
type Handler = (request: unknown, context: HandlerContext) => unknown;

export function guardedRoutes(router: ConnectRouter, current: () => Handlers): void {
  const handlerOf = (name: string): Handler =>
    (current() as unknown as Record<string, Handler>)[name] as Handler;
  const guarded = RolloutService.methods.map(({ localName, methodKind }): [string, Handler] => [
    localName,
    methodKind === 'unary'
      ? async (request, context) => await handlerOf(localName)(request, context)
      : async function* (request, context) {
          yield* handlerOf(localName)(request, context) as AsyncIterable<unknown>;
        },
  ]);
  router.service(RolloutService, Object.fromEntries(guarded) as Handlers);
}
