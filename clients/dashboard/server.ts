// The dashboard: a page, and the calls that it makes, on one port.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connectHandler } from '../../services/common/connect-handler.ts';
import { createPort, type Handler } from '../../services/common/port.ts';
import { type PageFile, pageFiles } from './files.ts';
import { type Guard, isLoopback, loopbackHosts, needsPassword, type Refusal, refusalOf } from './guard.ts';
import { type DashboardMesh, limited, rpcs } from './rpcs.ts';

/** Of a request: the page asks by names and numbers. */
const BODY_BYTES_MAX = 64 * 1024;
/** What calls in progress get at the end: they are reads, and watches do not end by themselves. */
const CLOSE_GRACE_MS = 500;

export interface DashboardOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly mesh: DashboardMesh;
  /** The page may cancel and drain, as far as the operator's token is good for it. */
  readonly actions: boolean;
  /** `mesh` is called with a token. */
  readonly token: boolean;
  /** What browsers ask their users for; see `needsPassword`. */
  readonly password: string | undefined;
}

export interface RunningDashboard {
  readonly port: number;
  close(): Promise<void>;
}

/** No script, style or call but the page's own; nobody may frame it; nothing of it is kept or told to other pages. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

export async function startDashboard(options: DashboardOptions): Promise<RunningDashboard> {
  const { host, mesh, actions, password } = options;
  if (needsPassword(options) && password === undefined) throw new Error('this dashboard needs a password');
  const files = new Map(pageFiles());
  const settings = Buffer.from(JSON.stringify({ actions, nodes: [...mesh.nodes.keys()] }));
  files.set('/settings.json', { type: 'application/json', content: settings });
  const connect = connectHandler({
    routes: rpcs(mesh, actions),
    interceptors: [limited()],
    readMaxBytes: BODY_BYTES_MAX,
    grpc: false,
    grpcWeb: false,
  });
  let guard: Guard = { hosts: new Set(), password };
  const handler = (request: IncomingMessage, response: ServerResponse): void => {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    const { method = '', url = '', headers } = request;
    const refused = refusalOf(guard, method, headers);
    if (refused !== undefined) end(response, refused);
    else if (method === 'POST') connect(request, response);
    else sendFile(files.get(url.replace(/\?.*/s, '')), method, response);
  };
  const port = createPort(handler as Handler);
  const listening = await port.listen(options.port, host);
  guard = { hosts: isLoopback(host) ? loopbackHosts(listening) : undefined, password };
  return { port: listening, close: () => port.close(CLOSE_GRACE_MS) };
}

function sendFile(file: PageFile | undefined, method: string, response: ServerResponse): void {
  if (file === undefined) {
    end(response, { status: 404, message: 'there is no such file' });
    return;
  }
  response.writeHead(200, { 'content-type': file.type, 'content-length': file.content.length });
  response.end(method === 'HEAD' ? undefined : file.content);
}

function end(response: ServerResponse, { status, message, headers }: Refusal): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers });
  response.end(`${message}\n`);
}
