// Ports claimed before anything listens there, so that two meshes that start in the same moment choose different ones.
// A claim is of the network namespace, as the port is.
import { claim, closed, listenQuietly } from '../../../services/common/claim.ts';

/** Claim a port for as long as this process lives. False where another process has claimed it, or listens there. */
export const claimPort = async (port: number, host: string): Promise<boolean> =>
  (await portFault(port, host)) === undefined;

/** The same; answers with why it cannot be had. */
export async function portFault(port: number, host: string): Promise<string | undefined> {
  const claimed = await claim(`port-${port}`);
  if (claimed === undefined) return TAKEN;
  const trial = await listenQuietly({ port, host });
  if (typeof trial === 'string') await claimed[Symbol.asyncDispose]();
  else await closed(trial);
  return typeof trial === 'string' ? (WHY[trial] ?? TAKEN) : undefined;
}

const TAKEN = 'is taken';
const WHY: Readonly<Record<string, string>> = {
  EACCES: 'is not for this user',
  EADDRNOTAVAIL: 'cannot be had: this machine has no such address',
  ENOTFOUND: 'cannot be had: nobody knows that name',
};
