// The Unix socket on which a node's LLM proxy takes what comes out of sandboxes: model calls, and no RPC.
import { openSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** What the kernel takes as the path of a socket. */
const SOCKET_PATH_BYTES_MAX = 107;

export const proxySocketOf = (dataDir: string, nodeId: string): string =>
  join(dataDir, 'nodes', nodeId, 'llm-proxy.sock');

/** The same socket under a name that the kernel takes. Of a long one the folder stays open while the process lives. */
export function shortSocketPath(path: string): string {
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return path;
  return `/proc/self/fd/${openSync(dirname(path), 'r')}/${basename(path)}`;
}
