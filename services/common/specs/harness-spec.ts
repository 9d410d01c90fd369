// The harness of a TaskSpec: every fault at once. Paths are those of the proto.
import type { HarnessSpec, McpServer } from '../../../gen/ts/polar/common/v1/task_pb.js';
import {
  EXTERNAL,
  HARNESSES,
  type HarnessName,
  listed,
  MCP_TRANSPORTS,
  type McpTransport,
  NOT_INSTALLABLE,
  TAKES_SKILLS,
} from './catalogue.ts';
import { type Faults, NUL } from './faults-of.ts';
import { harnessSettings } from './harness-settings.ts';
import { poolsFault } from './model-pools.ts';
import { checkExec, checkFiles } from './runtime-spec.ts';
import { PLUGIN_PATH } from './strategies.ts';

const MODEL_NAME_CHARS_MAX = 256;
const MCP_SERVERS_MAX = 16;
const ARTIFACTS_MAX = 16;
const SERVER_NAME = /^[A-Za-z0-9_-]{1,64}$/;

export function checkHarness(harness: HarnessSpec | undefined, faults: Faults): void {
  const plugin = harness?.importPath ?? '';
  if (harness === undefined || (harness.name === '' && plugin === '')) {
    faults.require(false, 'harness.name', `must be set; there are ${listed([...HARNESSES, EXTERNAL])}`);
    return;
  }
  faults.environment(harness.env, 'harness.env');
  faults.require(
    harness.modelName.length <= MODEL_NAME_CHARS_MAX,
    'harness.model_name',
    `must be at most ${MODEL_NAME_CHARS_MAX} characters`,
  );
  faults.require(!harness.modelName.includes('\0'), 'harness.model_name', NUL);
  const pools = poolsFault(harness.modelPools);
  faults.require(pools === undefined, 'harness.model_pools', pools ?? '');
  if (harness.command !== undefined) checkExec(harness.command, 'harness.command', faults);
  checkArtifacts(harness, faults);
  for (const [i, server] of harness.mcpServers.entries()) {
    checkServer(server, `harness.mcp_servers[${i}]`, faults);
  }
  checkFiles(harness.skills, 'harness.skills', faults);
  if (plugin === '' && harness.name === EXTERNAL) return;
  if (plugin === '') checkNamed(harness, faults);
  else checkPlugin(harness, faults);
}

function checkNamed(harness: HarnessSpec, faults: Faults): void {
  const { name } = harness;
  if (!isHarness(name)) {
    const why = NOT_INSTALLABLE[name];
    const unknown = `unknown harness ${name}; there are ${listed([...HARNESSES, EXTERNAL])}`;
    faults.require(false, 'harness.name', why === undefined ? unknown : `${name}: ${why}`);
    return;
  }
  faults.config(harnessSettings[name], harness.settings, 'harness.settings');
  const shell = name === 'shell';
  const rule = shell ? 'must be set for the shell harness' : 'is for the shell harness only';
  faults.require(shell === (harness.command !== undefined), 'harness.command', rule);
  checkServers(harness, MCP_TRANSPORTS[name], faults);
  if (harness.skills.length > 0) checkSkills(harness, name, faults);
}

/** One of which the harness would find none is not what was meant. */
function checkSkills({ skills }: HarnessSpec, name: HarnessName, faults: Faults): void {
  const takes = `${name} takes no skills; these do: ${listed(TAKES_SKILLS)}`;
  if (!faults.require(TAKES_SKILLS.includes(name), 'harness.skills', takes)) return;
  const found = skills.some(({ target }) => target.endsWith('/SKILL.md'));
  const rule = 'must hold a folder for each skill, with its SKILL.md: this one holds none';
  faults.require(found, 'harness.skills', rule);
}

/** What a plug-in takes of settings, servers and skills it says itself, on the node. */
function checkPlugin({ importPath, name, command }: HarnessSpec, faults: Faults): void {
  faults.require(
    PLUGIN_PATH.test(importPath),
    'harness.import_path',
    "must be the path of a .js, .mjs or .ts file below the node's plugins_dir, without . and ..",
  );
  faults.require(name === '', 'harness.name', 'must be empty where import_path is set');
  faults.require(command === undefined, 'harness.command', 'is for the shell harness only');
}

function checkServers(
  { name, mcpServers }: HarnessSpec,
  transports: readonly McpTransport[],
  faults: Faults,
): void {
  faults.require(
    mcpServers.length <= MCP_SERVERS_MAX,
    'harness.mcp_servers',
    `are at most ${MCP_SERVERS_MAX}`,
  );
  const names = new Set(mcpServers.map((server) => server.name));
  faults.require(names.size === mcpServers.length, 'harness.mcp_servers', 'must have names that differ');
  for (const [i, { transport }] of mcpServers.entries()) {
    const takes = transports.length === 0 ? 'no MCP servers' : `MCP servers over ${listed(transports)} only`;
    const known = (transports as readonly string[]).includes(transport);
    faults.require(known, `harness.mcp_servers[${i}].transport`, `${name} takes ${takes}`);
  }
}

function checkServer(server: McpServer, field: string, faults: Faults): void {
  const { name, transport, command, args, env, url } = server;
  faults.require(SERVER_NAME.test(name), `${field}.name`, 'must be 1 to 64 of [A-Za-z0-9_-]');
  faults.environment(env, `${field}.env`);
  for (const [i, arg] of args.entries()) {
    faults.require(!arg.includes('\0'), `${field}.args[${i}]`, NUL);
  }
  if (transport === 'stdio') {
    faults.text(command, `${field}.command`);
    faults.require(url === '', `${field}.url`, 'is for sse and streamable_http');
  } else {
    faults.require(/^https?:\/\/[^/\s]\S*$/.test(url), `${field}.url`, 'must be an http(s) URL');
    const rest = command === '' && args.length === 0 && Object.keys(env).length === 0;
    faults.require(rest, `${field}.command`, 'command, args and env are for stdio');
  }
}

function checkArtifacts({ artifacts }: HarnessSpec, faults: Faults): void {
  faults.require(artifacts.length <= ARTIFACTS_MAX, 'harness.artifacts', `are at most ${ARTIFACTS_MAX}`);
  for (const [i, path] of artifacts.entries()) {
    const clean = path !== '' && !path.split('/').includes('..') && !path.includes('\0');
    faults.require(clean, `harness.artifacts[${i}]`, 'must be a path without ..');
  }
}

const isHarness = (name: string): name is HarnessName => (HARNESSES as readonly string[]).includes(name);
