// polar dashboard: a page on the mesh, for an operator's browser.
import { randomBytes } from 'node:crypto';
import { HarnessService } from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { ProxyService } from '../../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { createPlainClient } from '../../../services/common/client.ts';
import { PolarError } from '../../../services/common/errors.ts';
import { EXIT } from '../../../services/common/exit-codes.ts';
import { needsPassword } from '../../dashboard/guard.ts';
import type { DashboardMesh, NodeClients } from '../../dashboard/rpcs.ts';
import { startDashboard } from '../../dashboard/server.ts';
import {
  type Arguments,
  type Command,
  TRAJECTORY_FLAGS,
  textFlag,
  URL_FLAGS,
  UsageError,
} from '../arguments.ts';
import { environment } from '../config.ts';
import { credentialsFor } from '../credentials.ts';
import {
  meshTopologyOf,
  rolloutClient,
  rolloutUrl,
  trajectoryClient,
  trajectoryUrl,
} from '../mesh-clients.ts';
import { say, sayJson } from '../output/say.ts';
import { stopped } from '../stops.ts';

const PORT = '8090';
const PASSWORD_BYTES = 18;

export const dashboard: Command = {
  name: 'dashboard',
  summary: 'serve a page that shows the mesh, its tasks and sessions',
  operands: [],
  flags: {
    ...URL_FLAGS,
    ...TRAJECTORY_FLAGS,
    host: {
      type: 'string',
      value: 'HOST',
      help: 'where it listens; default 127.0.0.1',
    },
    port: { type: 'string', value: 'PORT', help: `default ${PORT}; 0: a free one` },
    actions: {
      type: 'boolean',
      help: 'the page may cancel and drain, as far as $POLAR_TOKEN is good for it',
    },
  },
  examples: [
    'polar dashboard -c topology.yaml',
    'polar dashboard --actions --port 9000',
    'POLAR_DASHBOARD_PASSWORD=… polar dashboard --host 0.0.0.0',
  ],
  async run(args) {
    const host = textFlag(args, 'host') ?? '127.0.0.1';
    const actions = args.flags['actions'] === true;
    const reach = { host, actions, token: environment.token !== undefined };
    const password = environment.dashboardPassword ?? (needsPassword(reach) ? newPassword() : undefined);
    const port = portOf(args);
    const mesh = meshOf(args);
    const running = await startDashboard({ ...reach, port, mesh, password }).catch((error) => {
      throw new PolarError('INVALID_REQUEST', `--host ${host} --port ${port}: ${(error as Error).message}`);
    });
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${running.port}/`;
    const made = password !== environment.dashboardPassword ? password : undefined;
    if (args.flags['json'] === true) sayJson({ url, ...(made !== undefined && { password: made }) });
    else {
      say(`dashboard at ${url}`);
      if (made !== undefined) say(`password (any user name): ${made}`);
    }
    await stopped();
    await running.close();
    return EXIT.ok;
  },
};

function portOf(args: Arguments): number {
  const text = textFlag(args, 'port') ?? PORT;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new UsageError(`--port must be from 0 to 65535, not ${JSON.stringify(text)}`);
}

const newPassword = (): string => randomBytes(PASSWORD_BYTES).toString('base64url');

function meshOf(args: Arguments): DashboardMesh {
  const topology = meshTopologyOf(args);
  const nodes = topology.gateway.nodes.map(({ id, public_url: url }): [string, NodeClients] => {
    const credentials = credentialsFor(url);
    const proxy = createPlainClient(ProxyService, url, credentials);
    return [id, { proxy, harness: createPlainClient(HarnessService, url, credentials) }];
  });
  return {
    rollout: rolloutClient(rolloutUrl(args)),
    trajectories: trajectoryClient(trajectoryUrl(args)),
    nodes: new Map(nodes),
  };
}
