// MCP servers in the form that most harnesses read: `mcpServers` by name.
import type { McpServer } from '../../../gen/ts/polar/common/v1/task_pb.js';

/** Start of a server, on a machine that is busy too. Most harnesses go on without one that takes longer. */
export const MCP_START_MS = 120_000;

type Entry = Readonly<Record<string, unknown>>;

/** `remote` says how a server by address is written, `more` what each has beside that. */
export const mcpEntries = (
  servers: readonly McpServer[],
  remote: (server: McpServer) => Entry,
  more: Entry = {},
): Record<string, Entry> =>
  Object.fromEntries(
    servers.map((server) => [
      server.name,
      { ...(server.transport === 'stdio' ? local(server) : remote(server)), ...more },
    ]),
  );

const local = ({ command, args, env }: McpServer): Entry => ({ command, args, env });

/** As Gemini CLI and what came of it have it: the key says the transport. */
export const geminiRemote = ({ transport, url }: McpServer): Entry =>
  transport === 'sse' ? { url } : { httpUrl: url };
