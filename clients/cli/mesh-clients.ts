// Where the mesh is, and clients to it.
import type { Client } from '@connectrpc/connect';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { asPolarError, PolarError } from '../../services/common/errors.ts';
import { type Arguments, textFlag, UsageError } from './arguments.ts';
import { environment } from './config.ts';
import { credentialsFor } from './credentials.ts';
import { leaderClient } from './leader-client.ts';
import { isOfMesh } from './origin.ts';
import { meshTopologyOf } from './topology-file.ts';

export { meshTopologyOf };

/** One or more by commas. */
export function rolloutUrl(args: Arguments): string {
  const given = addressIn(args, 'rollout-url', ['POLAR_ROLLOUT_URL', environment.rolloutUrl]);
  return given ?? meshTopologyOf(args).rollout.public_url;
}

export function trajectoryUrl(args: Arguments): string {
  const given = addressIn(args, 'trajectory-url', ['POLAR_TRAJECTORY_URL', environment.trajectoryUrl]);
  return given ?? meshTopologyOf(args).reconstructor.public_url;
}

/** What a flag says, else the variable: a topology file that is named on the command line goes before that. */
export function addressIn(
  args: Arguments,
  flag: string,
  [variable, value]: readonly [name?: string, value?: string | undefined] = [],
): string | undefined {
  const told = textFlag(args, flag);
  const url = told ?? (textFlag(args, 'config') === undefined ? value : undefined);
  if (url === undefined) return undefined;
  const all = url.split(',').map((one) => one.trim().replace(/\/+$/, ''));
  const wrong = all.find((one) => !/^https?:\/\/[^/\s]/.test(one) || URL.parse(one) === null);
  if (wrong === undefined) return all.join(',');
  const name = told === undefined ? variable : `--${flag}`;
  throw new UsageError(`${name} must be like http://HOST:PORT, or https://, not ${JSON.stringify(wrong)}`);
}

export const rolloutClient = leaderClient;
export const trajectoryClient = (url: string): Client<typeof TrajectoryService> =>
  createPlainClient(TrajectoryService, url, credentialsFor(url));

/**
 * A call that throws MESH_UNREACHABLE, with where it went, when nobody answers there, or somebody else does; `flag` is the one
 * that names the place.
 */
export async function at<T>(url: string, call: Promise<T>, flag = '--rollout-url'): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    const error = asPolarError(thrown);
    const isOther = error.reason === 'INTERNAL' && !isOfMesh(error);
    const isNobody = error.reason === 'NODE_LOST' || (error.reason === 'STAGE_TIMEOUT' && !isOfMesh(error));
    if (!isNobody && !isOther) throw error;
    const who = isOther ? `what answers at ${url} is no mesh of this version` : `nobody answers at ${url}`;
    const advice = `start a mesh with \`polar up\`, or say where it is with -c or ${flag}`;
    throw new PolarError('MESH_UNREACHABLE', `${who} (${error.message}): ${advice}`, { cause: error });
  }
}
