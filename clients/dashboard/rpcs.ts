// The calls that the page may make: a fixed list, each handed on to the mesh with the operator's token.
import type { Client, ConnectRouter, HandlerContext, Interceptor } from '@connectrpc/connect';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { ProxyService } from '../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import {
  type ExportSessionRequest,
  type ExportSessionResponse,
  TrajectoryService,
} from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { PolarError, toConnectError } from '../../services/common/errors.ts';

/** Calls that go on at once, streams among them. */
const CALLS_MAX = 256;
/** Characters of an export that the page gets; the rest is for `polar export`. */
const EXPORT_CHARS_MAX = 2 * 1024 * 1024;
/** Names the node whose service is asked. */
const NODE_HEADER = 'polar-node';

export interface NodeClients {
  readonly proxy: Client<typeof ProxyService>;
  readonly harness: Client<typeof HarnessService>;
}

/** Clients that send the operator's token. */
export interface DashboardMesh {
  readonly rollout: Client<typeof RolloutService>;
  readonly trajectories: Client<typeof TrajectoryService>;
  /** By node id. */
  readonly nodes: ReadonlyMap<string, NodeClients>;
}

/** `actions`: cancel and drain, too. A call that its browser has left is left at the mesh, too. */
export const rpcs =
  ({ rollout, trajectories, nodes }: DashboardMesh, actions: boolean) =>
  (router: ConnectRouter): void => {
    const nodeOf = ({ requestHeader }: HandlerContext): NodeClients => {
      const id = requestHeader.get(NODE_HEADER) ?? '';
      const node = nodes.get(id);
      if (node === undefined)
        throw new PolarError('NOT_FOUND', `the topology of this dashboard has no node ${id}`);
      return node;
    };
    router.service(RolloutService, {
      listTasks: (request, { signal }) => rollout.listTasks(request, { signal }),
      getTask: (request, { signal }) => rollout.getTask(request, { signal }),
      listSessions: (request, { signal }) => rollout.listSessions(request, { signal }),
      getSession: (request, { signal }) => rollout.getSession(request, { signal }),
      watchTask: (request, { signal }) => rollout.watchTask(request, { signal }),
      listNodes: (request, { signal }) => rollout.listNodes(request, { signal }),
      listQueues: (request, { signal }) => rollout.listQueues(request, { signal }),
      ...(actions && {
        cancelTask: (request, { signal }) => rollout.cancelTask(request, { signal }),
        cancelSession: (request, { signal }) => rollout.cancelSession(request, { signal }),
        drainNode: (request, { signal }) => rollout.drainNode(request, { signal }),
      }),
    });
    router.service(TrajectoryService, {
      // Without its traces, whatever is asked: they may be of any size.
      getTrajectory: ({ sessionId }, { signal }) =>
        trajectories.getTrajectory({ sessionId, summary: true }, { signal }),
      exportSession: (request, { signal }) => beginningOf(trajectories, request, signal),
    });
    router.service(ProxyService, {
      listEngines: (request, context) =>
        nodeOf(context).proxy.listEngines(request, { signal: context.signal }),
    });
    router.service(HarnessService, {
      getSessionLogs: (request, context) =>
        nodeOf(context).harness.getSessionLogs(request, { signal: context.signal }),
    });
  };

async function* beginningOf(
  trajectories: DashboardMesh['trajectories'],
  request: ExportSessionRequest,
  signal: AbortSignal,
): AsyncGenerator<ExportSessionResponse> {
  const enough = new AbortController();
  let chars = 0;
  try {
    const stream = trajectories.exportSession(request, { signal: AbortSignal.any([signal, enough.signal]) });
    for await (const response of stream) {
      chars += response.line.length;
      if (chars > EXPORT_CHARS_MAX) return;
      yield response;
    }
  } finally {
    enough.abort();
  }
}

/** Errors as the mesh tells them, and no more than CALLS_MAX calls at once. */
export function limited(): Interceptor {
  let calls = 0;
  return (next) => async (request) => {
    if (calls >= CALLS_MAX) {
      throw toConnectError(
        new PolarError('STREAMS_LIMIT', `this dashboard has ${CALLS_MAX} calls in progress`),
      );
    }
    // One that is over already would never fire.
    request.signal.throwIfAborted();
    calls++;
    // Fires when the call is over, whichever way.
    request.signal.addEventListener('abort', () => calls--, { once: true });
    try {
      const response = await next(request);
      return response.stream ? { ...response, message: mapped(response.message) } : response;
    } catch (error) {
      throw toConnectError(error);
    }
  };
}

async function* mapped<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw toConnectError(error);
  }
}
