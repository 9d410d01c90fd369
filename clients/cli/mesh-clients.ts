// Where the mesh is, and clients to it.
import type { Client } from '@connectrpc/connect';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { asPolarError, PolarError } from '../../services/common/errors.ts';
import { type Arguments, textFlag } from './arguments.ts';
import { environment } from './config.ts';
import { credentialsFor } from './credentials.ts';
import { leaderClient } from './leader-client.ts';
import { topologyOf } from './topology-file.ts';

export { topologyOf };

export function rolloutUrl(args: Arguments): string {
  const url = textFlag(args, 'rollout-url') ?? environment.rolloutUrl;
  return (url ?? topologyOf(args).rollout.public_url).replace(/\/+$/, '');
}

export function trajectoryUrl(args: Arguments): string {
  const url = textFlag(args, 'trajectory-url') ?? environment.trajectoryUrl;
  return (url ?? topologyOf(args).reconstructor.public_url).replace(/\/+$/, '');
}

export const rolloutClient = leaderClient;
export const trajectoryClient = (url: string): Client<typeof TrajectoryService> =>
  createPlainClient(TrajectoryService, url, credentialsFor(url));

/** A call that says where it went when nobody answers there. */
export async function at<T>(url: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    const error = asPolarError(thrown);
    if (error.reason !== 'NODE_LOST') throw error;
    const advice = 'start a mesh with `polar up`, or say where it is with -c or --rollout-url';
    throw new PolarError('NODE_LOST', `nobody answers at ${url} (${error.message}): ${advice}`, {
      cause: error,
    });
  }
}
