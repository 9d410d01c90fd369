// MCP servers in the form that most harnesses read: `mcpServers` by name.
import type { McpServer } from '../../../gen/ts/polar/common/v1/task_pb.js';

type Entry = Readonly<Record<string, unknown>>;

/** A server that the harness starts; `remote` says how one by address is written. */
export const mcpEntries = (
  servers: readonly McpServer[],
  remote: (server: McpServer) => Entry,
): Record<string, Entry> =>
  Object.fromEntries(
    servers.map((server) => [server.name, server.transport === 'stdio' ? local(server) : remote(server)]),
  );

const local = ({ command, args, env }: McpServer): Entry => ({ command, args, env });

/** As Gemini CLI and what came of it have it: the key says the transport. */
export const geminiRemote = ({ transport, url }: McpServer): Entry =>
  transport === 'sse' ? { url } : { httpUrl: url };
