// A mesh of processes with TLS on every port and to NATS, which asks all callers for certificates: `polar up`, a session in
// each kind of sandbox, the command line, the Python client by HTTP and by gRPC, and who is refused.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import type { PolarError } from '../../services/common/errors.ts';
import { openBus } from '../../services/common/nats/bus.ts';
import { CertificateStore } from '../../services/common/tls/certificates.ts';
import { Authority, type KeyPair } from '../support/certificates.ts';
import { type Ended, polar, ROOT, type Running, startPolar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { unclaimedPorts } from '../support/nats.ts';
import { bwrapIsThere } from '../support/runtime-prewarm.ts';

const run = promisify(execFile);

describe('a mesh with TLS', function () {
  this.timeout(120_000);
  const opened = new AsyncDisposableStack();
  let folder: string;
  let topology: string;
  let stranger: KeyPair;
  let others: Authority;
  let rolloutUrl: string;
  let trajectoryUrl: string;
  let proxyUrl: string;
  let natsPort: number;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-tls-mesh-'));
    opened.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
    others = new Authority(folder, 'others');
    stranger = others.sign('stranger', ['DNS:stranger']);
    // As the documents tell it.
    await run('sh', ['-ec', documented('sh')], { cwd: folder });
    const { tls, nats: ofNats } = parse(documented('yaml'));
    const ports = await unclaimedPorts(8);
    const [rollout = 0, trajectories = 0, nats = 0, proxy, prewarm, executor, evaluator, harness] = ports;
    rolloutUrl = `https://127.0.0.1:${rollout}`;
    trajectoryUrl = `https://127.0.0.1:${trajectories}`;
    proxyUrl = `https://127.0.0.1:${proxy}`;
    natsPort = nats;
    topology = join(folder, 'topology.yaml');
    const node = {
      ...{ id: 'node-1', host: '127.0.0.1', port: proxy, runtime_prewarm_port: prewarm },
      ...{ harness_executor_port: executor, evaluator_port: evaluator, harness_port: harness },
    };
    const local = (port: number): object => ({ host: '127.0.0.1', port });
    const file = {
      ...{ data_dir: join(folder, 'data'), tls, nats: { port: nats, ...ofNats } },
      ...{ rollout: local(rollout), reconstructor: local(trajectories), gateway: { nodes: [node] } },
    };
    writeFileSync(topology, stringify(file));
    const up = startPolar(['up', '-c', topology, '--json'], { cwd: folder });
    opened.defer(() => ended(up));
    const settled = (): boolean => up.stdout().includes('\n') || up.child.exitCode !== null;
    await eventually(() => `the mesh is up: ${up.stderr()}`, settled);
    expect(up.child.exitCode, up.stderr()).to.equal(null);
  });
  after(() => opened.disposeAsync());

  const ca = (): string => join(folder, 'ca.pem');
  const as = ({ cert, key }: KeyPair, authority = ca()): Record<string, string> => ({
    ...{ POLAR_CA_FILE: authority, POLAR_CERT_FILE: cert, POLAR_KEY_FILE: key },
  });
  const trainer = (): KeyPair => ({ cert: join(folder, 'trainer.pem'), key: join(folder, 'trainer.key') });
  const call = (args: readonly string[], env: Record<string, string>): Promise<Ended> =>
    polar([...args, '--rollout-url', rolloutUrl], { cwd: folder, env });

  it('runs sessions from the command line, with the certificates of flags, variables or the topology', async () => {
    const backends = bwrapIsThere ? ['process', 'bubblewrap'] : ['process'];
    const files = backends.map((backend) => {
      const file = join(folder, `${backend}.yaml`);
      writeFileSync(file, stringify({ ...TASK, task_id: `tls-${backend}`, runtime: { backend } }));
      return file;
    });
    const flags = ['--ca', 'ca.pem', '--cert', 'trainer.pem', '--key', 'trainer.key'];
    const submitted = await call(['submit', ...files, '--wait', ...flags], {});
    expect(submitted.code, submitted.stderr + submitted.stdout).to.equal(0);
    const [byVariable, byTopology, rebuilt] = await Promise.all([
      call(['status', 'tls-process'], as(trainer())),
      polar(['status', 'tls-process', '-c', topology], { cwd: folder }),
      polar(['rebuild', 'tls-process', '-c', topology], { cwd: folder }),
    ]);
    expect(rebuilt.code, rebuilt.stderr).to.equal(0);
    expect(byVariable.stdout, byVariable.stderr).to.contain('COMPLETED');
    expect(byTopology.stdout, byTopology.stderr).to.contain('COMPLETED');
  });

  it('opens sessions for agents that show a certificate of their own', async () => {
    const shown = '--cacert ca.pem --cert trainer.pem --key trainer.key';
    const agent = `curl -fsS ${shown} "$OPENAI_BASE_URL/models"`;
    const flags = ['-c', topology, '--reward', '1'];
    const captured = await polar(['capture', ...flags, '--', 'sh', '-c', agent], { cwd: folder });
    expect(captured.code, captured.stderr).to.equal(0);
    expect(captured.stdout).to.contain('"object":"list"');
    expect(captured.stderr).to.contain('is closed with reward 1');
  });

  it('gives trajectories to the Python client, over HTTP and by gRPC', async () => {
    const { http, grpc, call: called, policy } = await read(as(trainer()));
    expect(http).to.equal('tls-process completed 1.0');
    expect(grpc).to.equal(http);
    expect(called).to.equal('1 sessions');
    expect(policy).to.equal('1 proxies');
  });

  it('refuses who has no certificate, the wrong one, another authority, or no TLS, and says so at once', async () => {
    const none = { POLAR_CA_FILE: ca() };
    const faults: [string, Record<string, string>, RegExp, string?][] = [
      ['no certificate', none, /asks for a client certificate, and none was given/],
      ['of a stranger', as(stranger), /client certificate is not accepted here/],
      [
        'another authority',
        as(trainer(), others.file),
        /of no authority that is trusted|CERTIFICATE_VERIFY_FAILED/,
      ],
      [
        'another name',
        as(trainer()),
        /for another name|mismatch|not in peer certificate|Hostname/,
        'localhost',
      ],
      ['without TLS', as(trainer()), /takes TLS alone/, 'http'],
    ];
    for (const [what, env, told, other] of faults) {
      const way = (url: string): string =>
        other === 'http' ? url.replace('https', 'http') : url.replace('127.0.0.1', other ?? '127.0.0.1');
      const [cli, seen] = await Promise.all([
        polar(['status', '--rollout-url', way(rolloutUrl)], { cwd: folder, env }),
        read(env, way),
      ]);
      expect(cli.code, what).to.equal(3);
      for (const [by, said] of Object.entries({ ...seen, cli: cli.stderr })) {
        expect(said, `${what}, ${by}`).to.match(/^(polar: TLS_FAILED: |TLS_FAILED False: )/);
        expect(said, `${what}, ${by}`).to.match(told);
      }
    }
  });

  it('lets nobody to NATS without a good certificate', async () => {
    const url = `tls://127.0.0.1:${natsPort}`;
    const refused = async (tls: object): Promise<PolarError> =>
      await openBus({ url, name: 'stranger', tls: new CertificateStore(tls, String) }).then(
        () => expect.fail('was let in'),
        (error) => error,
      );
    const wrong = { cert_file: stranger.cert, key_file: stranger.key, ca_file: ca() };
    const errors = await Promise.all([refused({}), refused({ ca_file: ca() }), refused(wrong)]);
    expect(errors.map(({ reason }) => reason)).to.deep.equal(Array(3).fill('TLS_FAILED'));
    const [untrusted, none, strangers] = errors.map(({ message }) => message);
    expect(untrusted).to.contain('of no authority that is trusted');
    expect(none).to.contain("refuses this side's certificate");
    expect(strangers).to.contain("refuses this side's certificate");
  });

  it('does not come up with files that cannot be used', async () => {
    const file = join(folder, 'broken.yaml');
    writeFileSync(file, stringify({ tls: { cert_file: trainer().cert, key_file: stranger.key } }));
    const { code, stderr } = await polar(['up', '-c', file, '--data-dir', join(folder, 'broken')], {
      cwd: folder,
    });
    expect(code).to.equal(2);
    expect(stderr).to.match(/INVALID_CONFIG: TLS has 1 fault\(s\):\s+tls\.key_file: .*is not the key of/);
  });

  it('says which file of a caller cannot be used', async () => {
    const flags = ['--ca', join(folder, 'gone.pem'), '--cert', trainer().cert, '--key', stranger.key];
    const { code, stderr } = await call(['status', ...flags], {});
    expect(code).to.equal(2);
    expect(stderr).to.match(/^polar: INVALID_CONFIG: .*\n +--ca .*gone\.pem: ENOENT/);
    expect(stderr).to.match(/\n +--key .*stranger\.key is not the key of the certificate in .*trainer\.pem/);
  });

  it('shows itself to the dashboard', async () => {
    const dashboard = startPolar(['dashboard', '-c', topology, '--port', '0', '--json'], { cwd: folder });
    opened.defer(() => ended(dashboard));
    await eventually(dashboard.stderr, () => dashboard.stdout().includes('\n'));
    const { url } = JSON.parse(dashboard.stdout());
    const ask = async (method: string, node = ''): Promise<[number, object]> => {
      const headers = { 'content-type': 'application/json', 'polar-node': node };
      const answer = await fetch(`${url}${method}`, { method: 'POST', headers, body: '{}' });
      return [answer.status, (await answer.json()) as object];
    };
    const [nodes, engines] = await Promise.all([
      ask('polar.scheduler.v1.RolloutService/ListNodes'),
      ask('polar.llm_proxy.v1.ProxyService/ListEngines', 'node-1'),
    ]);
    expect(nodes[0], JSON.stringify(nodes)).to.equal(200);
    expect(engines[0], JSON.stringify(engines)).to.equal(200);
    expect(JSON.stringify(nodes[1])).to.contain('node-1');
  });

  /** What a trainer saw of each way to call the mesh, or why it saw nothing. */
  async function read(
    env: Record<string, string>,
    way: (url: string) => string = (url) => url,
  ): Promise<Record<'http' | 'grpc' | 'call' | 'policy', string>> {
    const python = join(ROOT, '.venv/bin/python');
    const args = ['-c', READER, way(rolloutUrl), way(trajectoryUrl), way(proxyUrl)];
    const environment = { ...process.env, ...env, PYTHONPATH: join(ROOT, 'clients/python/src') };
    const { stdout } = await run(python, args, { env: environment, timeout: 60_000 });
    return JSON.parse(stdout);
  }
});

const READER = `
import json, sys
from polar_mesh import Client, PolarError, PolicyClient

def stream(client, consumer):
    with client.stream(consumer, task_id="tls-process") as stream:
        batch = stream.next(timeout_s=30)
        batch.ack()
        return " ".join(f"{batch.task_id} {one.outcome} {one.reward}" for one in batch.trajectories)

def call(client):
    return f"{len(client.list_sessions('tls-process'))} sessions"

def told(what):
    try:
        return what()
    except PolarError as error:
        return f"{error.reason} {error.retryable}: {error.message}"

seen = {}
for transport in ("http", "grpc"):
    with Client(sys.argv[1], sys.argv[2], transport=transport, timeout_s=30) as client:
        seen[transport] = told(lambda: stream(client, transport))
        seen["call"] = told(lambda: call(client))
with PolicyClient(sys.argv[3], timeout_s=30) as policy:
    seen["policy"] = told(lambda: f"{len(policy.get_policy().proxies)} proxies")
print(json.dumps(seen))
`;

/** The first block of a language in the document. */
function documented(language: string): string {
  const text = readFileSync(join(ROOT, 'docs/security.md'), 'utf8');
  const block = new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'm').exec(text)?.[1];
  return block ?? expect.fail(`no block in ${language}`);
}

async function ended({ child, ended: over }: Running): Promise<void> {
  child.kill('SIGTERM');
  await over;
}

const TASK = {
  instruction: 'Say something.',
  num_samples: 1,
  timeout_seconds: 60,
  agent: {
    harness: 'shell',
    custom_shell: {
      command: `curl -sS --fail -o /dev/null "$OPENAI_BASE_URL/chat/completions" -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d '{"model":"m","messages":[{"role":"user","content":"hi"}]}'`,
    },
  },
  builder: { strategy: 'prefix_merging' },
  evaluator: { strategy: 'session_completed' },
};
