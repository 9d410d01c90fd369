// The egress list of a task in each backend that isolates: what it opens, what it denies, and that all of it is counted.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { pathWithApptainer, withoutApptainer } from '../support/apptainer.ts';
import { PROGRAMS_IMAGE } from '../support/container-engine.ts';
import { type EngineKind, LONG_ENGINES, nodeWith } from '../support/engines.ts';
import { outsideServer } from '../support/host-bait.ts';
import { isLong } from '../support/long.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { bwrapIsThere, startNode, type TestNode } from '../support/runtime-prewarm.ts';

const MiB = 1024 * 1024;

interface Site extends AsyncDisposable {
  readonly node: TestNode;
  /** Of the backend. */
  readonly spec: { readonly backend: string; readonly image?: string };
}

type Open = (nats: TestNats) => Promise<Site>;

const onHost =
  (backend: string, path?: string): Open =>
  async (nats) => {
    const node = await startNode({ natsUrl: nats.url, ...(path !== undefined && { path }) });
    return { node, spec: { backend }, [Symbol.asyncDispose]: () => node[Symbol.asyncDispose]() };
  };

const inContainers =
  (kind: EngineKind): Open =>
  async (nats) => {
    const engine = await kind.start();
    const node = await startNode({ natsUrl: nats.url, node: nodeWith(kind, engine) });
    return {
      node,
      spec: { backend: kind.backend, image: PROGRAMS_IMAGE },
      async [Symbol.asyncDispose]() {
        await node[Symbol.asyncDispose]();
        await engine[Symbol.asyncDispose]();
      },
    };
  };

const APPTAINER = ['apptainer', onHost('apptainer', pathWithApptainer)] as const;
/** apptainer's networks are made as bubblewrap's, podman's as docker's: both in `npm run test:containers`. */
const BACKENDS: readonly (readonly [name: string, open: Open])[] = [
  ...(bwrapIsThere ? [['bubblewrap', onHost('bubblewrap')] as const] : []),
  ...(isLong && withoutApptainer === undefined ? [APPTAINER] : []),
  ...LONG_ENGINES.map((kind) => [kind.backend, inContainers(kind)] as const),
];

for (const [backend, open] of BACKENDS) {
  describe(`runtime-prewarm: egress list with ${backend}`, function () {
    this.timeout(60_000);
    let nats: TestNats;
    let site: Site;
    let node: TestNode;
    let web: Server;
    let port = 0;
    before(async () => {
      nats = await startNats();
      site = await open(nats);
      node = site.node;
      web = await webServer();
      port = (web.address() as AddressInfo).port;
    });
    after(async () => {
      web.close();
      await site[Symbol.asyncDispose]();
      await nats[Symbol.asyncDispose]();
    });

    const acquire = (egress: { host: string; port: number }[], more: object = {}): Promise<string> =>
      node.acquire({ spec: { ...site.spec, network: { egress, ...more } } });
    const here = (): { host: string; port: number }[] => [
      { host: 'localhost', port },
      { host: '127.0.0.1', port },
    ];

    it('opens what is listed, by request and by tunnel, both ways and whole', async () => {
      const id = await acquire(here());
      const url = `http://localhost:${port}`;
      const script = `
        export no_proxy= NO_PROXY=
        curl -sS ${url}/request
        curl -sS -p ${url}/tunnel
        head -c ${4 * MiB} /dev/zero | curl -sS -T - ${url}/chunked
        head -c ${4 * MiB} /dev/zero | curl -sS -p --data-binary @- ${url}/sized
        curl -sS "${url}/large?bytes=${8 * MiB}" | wc -c
        curl -sS -o /dev/null -w '%{http_code}\\n' ${url}/missing`;
      const { out, err, denied } = await node.sh(id, script, { proxyAccess: true });
      expect(out.split('\n'), err).to.eql([
        `GET /request localhost:${port} 0`,
        `GET /tunnel localhost:${port} 0`,
        `PUT /chunked localhost:${port} ${4 * MiB}`,
        `POST /sized localhost:${port} ${4 * MiB}`,
        String(8 * MiB),
        '404',
        '',
      ]);
      expect(denied?.count).to.equal(0);
    });

    it('denies the rest with the rule, and counts it', async () => {
      const id = await acquire([{ host: 'localhost', port }]);
      const script = `
        export no_proxy= NO_PROXY=
        curl -sS http://not-listed.test/; curl -sS https://not-listed.test/ -o /dev/null
        curl -sS http://localhost:${port}/; curl -sS http://127.0.0.1:${port}/; curl -sS http://127.1:1/`;
      const { out, err, denied } = await node.sh(id, script, { proxyAccess: true });
      const rules = out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).error)
        .map(({ reason, rule }) => `${reason} ${rule}`);
      expect(rules).to.eql([
        'EGRESS_DENIED not_listed',
        // A name that leads to this machine.
        'EGRESS_DENIED address_not_public',
        'EGRESS_DENIED not_listed',
        'EGRESS_DENIED not_listed',
      ]);
      expect(err).to.match(/403/);
      expect(denied?.count).to.equal(5);
      expect(denied?.targets).to.eql([
        ...[
          'not-listed.test:80',
          'not-listed.test:443',
          `localhost:${port}`,
          `127.0.0.1:${port}`,
          '127.0.0.1:1',
        ],
      ]);
    });

    it('reaches a machine outside where its address is listed, through the list alone', async function () {
      await using outside = await outsideServer();
      if (outside === undefined) this.skip();
      const [where = ''] = outside.addresses;
      const [host = '', number] = where.split(':');
      const id = await acquire([{ host, port: Number(number) }]);
      const code = `curl -s -m 3 -o /dev/null -w '%{http_code} ' http://${where}/`;
      const { out, denied } = await node.sh(id, `${code}; http_proxy= ${code}`, { proxyAccess: true });
      expect(out).to.equal('501 000 ');
      expect(denied).to.deep.include({ count: 1, targets: [] });
    });

    it('still has the LLM proxy, also for programs that send everything to the egress proxy', async () => {
      const id = await acquire(here());
      const script = 'curl -sS http://127.0.0.1:4141/a; no_proxy= NO_PROXY= curl -sS http://127.0.0.1:4141/b';
      const { out } = await node.sh(id, script, { proxyAccess: true });
      expect(out).to.equal('from the proxyfrom the proxy');
      expect(node.proxied.slice(-2)).to.eql(['/a', '/b']);
    });

    it('tells a host that does not answer from one that is denied', async () => {
      const id = await acquire([
        { host: '127.0.0.1', port: 1 },
        { host: 'no-such-name.invalid', port: 80 },
      ]);
      const script = `export no_proxy= NO_PROXY=
        curl -sS http://127.0.0.1:1/; curl -sS http://no-such-name.invalid/; curl -sS http://127.0.0.1:4142/`;
      const { out, denied } = await node.sh(id, script, { proxyAccess: true });
      const reasons = out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).error.reason);
      expect(reasons).to.eql(['EGRESS_UNREACHABLE', 'EGRESS_UNREACHABLE', 'EGRESS_DENIED']);
      expect(denied?.count).to.equal(1);
    });

    it('is for the harness alone, and the list of the preparation for its steps alone', async () => {
      const script = `no_proxy= NO_PROXY= curl -sS http://localhost:${port}/ > /polar/session/out 2>&1; true`;
      const prepare = [{ step: { case: 'exec' as const, value: { command: script } } }];
      const spec = { ...site.spec, prepare };
      const only = async (network: object): Promise<string[]> => {
        const id = await node.acquire({ spec: { ...spec, network } });
        const prepared = (await node.sh(id, 'cat /polar/session/out')).out;
        return [
          prepared,
          (await node.sh(id, `${script}; cat /polar/session/out`, { proxyAccess: true })).out,
        ];
      };
      const answer = `GET / localhost:${port} 0\n`;
      const [first, second] = await only({ prepareEgress: here() });
      expect(first).to.equal(answer);
      expect(second).to.match(/Failed to connect|Could not resolve|Couldn't connect/);
      const [third, fourth] = await only({ egress: here() });
      expect(third).to.match(/Failed to connect|Could not resolve|Couldn't connect/);
      expect(fourth).to.equal(answer);
    });

    it('says what a failed step was not let connect to', async () => {
      const command = 'curl -sSf http://not-listed.test/';
      const prepare = [{ step: { case: 'exec' as const, value: { command } } }];
      const network = { prepareEgress: [{ host: 'site.test', port: 443 }] };
      const error = await node
        .acquire({ spec: { ...site.spec, prepare, network } })
        .catch((reason) => reason);
      expect(error.reason).to.equal('PREPARE_FAILED');
      expect(error.message).to.contain('1 connection(s) denied (not-listed.test:80)');
    });

    it('counts what is sent past it, with a list and without', async () => {
      for (const egress of [[], here()]) {
        const id = await acquire(egress);
        const script = `python3 -c '
import socket
for where in (("192.0.2.1", 80), ("8.8.8.8", 53), ("127.0.0.1", 9)):
    try: socket.socket().connect(where)
    except OSError: pass'`;
        const { denied, err } = await node.sh(id, script, { proxyAccess: true });
        expect(denied, err).to.deep.include({ count: 2, targets: [] });
      }
    });

    it('cuts what is open when the command ends', async () => {
      const id = await acquire(here());
      const script = `no_proxy= NO_PROXY= curl -sS -N http://localhost:${port}/endless > /dev/null & sleep 0.5; echo done`;
      const left = once(web, 'cut');
      const { out, empty } = await node.sh(id, script, { proxyAccess: true });
      expect(out).to.equal('done\n');
      expect(empty).to.equal(true);
      await left;
    });
  });
}

/** Says what it was asked; `cut` is emitted when a reader of /endless is gone. */
async function webServer(): Promise<Server> {
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
    let bytes = 0;
    for await (const chunk of request) bytes += chunk.length;
    if (pathname === '/missing') response.writeHead(404);
    if (pathname === '/large') return void response.end(Buffer.alloc(Number(searchParams.get('bytes'))));
    if (pathname === '/endless') {
      response.write('begun');
      return void response.once('close', () => server.emit('cut'));
    }
    response.end(`${request.method} ${pathname} ${request.headers.host} ${bytes}\n`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
