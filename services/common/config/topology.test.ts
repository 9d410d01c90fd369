import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { PolarError } from '../errors.ts';
import { nodeOf, readCommonConfig } from './environment.ts';
import { parseTopology, readTopology, topologySchema } from './topology.ts';

const EXAMPLE = join(import.meta.dirname, '../../../examples/topology.yaml');

/** Paths of all faults. */
function faultsIn(text: string): string[] {
  try {
    parseTopology(text, 'topology.yaml');
  } catch (error) {
    if (!(error instanceof PolarError)) throw error;
    expect(error.reason).to.equal('INVALID_CONFIG');
    expect(error.message).to.contain('topology.yaml');
    return error.fields.map(({ field }) => field);
  }
  return [];
}
const pools = (...all: object[]): object =>
  node({ model_pool: all.map((more) => ({ alias: 'pool/a', base_url: 'http://a', ...more })) });
const node = (more: object): object => ({ gateway: { nodes: [more] } });
const EXPERTS = { layers: 2, top_k: 2, experts: 8 };

describe('a topology file', () => {
  it('puts an IPv6 host into brackets in the address that callers are told', () => {
    const told = (host: string): string =>
      parseTopology(JSON.stringify({ rollout: { host } }), 'topology.yaml').rollout.public_url;
    expect([told('::1'), told('fd00::2'), told('::'), told('trainer')]).to.eql([
      'http://[::1]:8080',
      'http://[fd00::2]:8080',
      'http://127.0.0.1:8080',
      'http://trainer:8080',
    ]);
  });

  it('has no address that is none', () => {
    for (const wrong of ['http://a b', 'http://h:99999', 'http://', 'ftp://h', 'h:1']) {
      expect(faultsIn(stringify({ rollout: { public_url: wrong } })), wrong).to.deep.equal([
        'rollout.public_url',
      ]);
      const inference = { base_url: wrong, servers: [wrong] };
      expect(faultsIn(stringify(node({ inference }))), wrong).to.deep.equal([
        'gateway.nodes[0].inference.base_url',
        'gateway.nodes[0].inference.servers[0]',
      ]);
    }
  });

  it('has no port behind the last one', () => {
    expect(faultsIn(stringify(node({ port: 65_533 })))).to.deep.equal([
      'gateway.nodes[0].evaluator_port',
      'gateway.nodes[0].harness_port',
    ]);
    const given = { port: 65_535, runtime_prewarm_port: 1, harness_executor_port: 2, evaluator_port: 3 };
    expect(faultsIn(stringify(node({ ...given, harness_port: 4 })))).to.deep.equal([]);
  });

  it('may be empty: every default is that of the reference system', () => {
    const { rollout, gateway, reconstructor } = parseTopology('{}', 'topology.yaml');
    for (const empty of ['', '# rollout:\n', '---\n']) {
      expect(parseTopology(empty, 'topology.yaml')).to.deep.equal(parseTopology('{}', 'topology.yaml'));
    }
    expect(rollout).to.include({ host: '0.0.0.0', port: 8080, public_url: 'http://127.0.0.1:8080' });
    expect(rollout).to.include({ dispatch_poll_interval_seconds: 1, callback_grace_seconds: 120 });
    expect(gateway.heartbeat_interval_seconds).to.equal(30);
    expect(gateway.completion_persistence).to.include({ max_field_bytes: 1_048_576, queue_size: 16_384 });
    expect(gateway.nodes[0]?.inference).to.include({
      engine: 'sglang',
      base_url: 'http://127.0.0.1:8000',
      scheduler: 'none',
    });
    expect(gateway.nodes[0]).to.deep.include({
      id: hostname(),
      port: 8081,
      model_served: '',
      model_pool: [],
      max_init_workers: 4,
      max_run_workers: 2,
      max_postrun_workers: 4,
      runtime_prewarm_port: 8082,
      harness_executor_port: 8083,
      evaluator_port: 8084,
      max_ready: 2,
      max_postrun_ready: 4,
      layers_max_mb: 20_480,
      layers_free_mb: 2_048,
      creates_per_s: {},
      creates_burst: 8,
      cache_dir: resolve('.polar/cache'),
    });
    expect(reconstructor.public_url).to.equal('http://127.0.0.1:8070');
  });

  it('drops the last slash of a URL, and takes a blank one as none', () => {
    const { rollout, gateway } = parseTopology(
      stringify({
        rollout: { public_url: 'https://mesh.example/polar/' },
        gateway: { nodes: [{ host: '10.0.0.1', public_url: '' }] },
      }),
      'topology.yaml',
    );
    expect(rollout.public_url).to.equal('https://mesh.example/polar');
    expect(gateway.nodes[0]?.public_url).to.equal('http://10.0.0.1:8081');
  });

  it('has https:// for what it does not name with TLS, and whole paths of its files', () => {
    const { rollout, reconstructor, gateway, tls, nats } = parseTopology(
      stringify({ tls: TLS, nats: { tls: { ca_file: '/ca.pem' } } }),
      'topology.yaml',
    );
    const urls = [rollout, reconstructor, gateway.nodes[0]].map((one) => one?.public_url);
    expect(urls).to.deep.equal([
      'https://127.0.0.1:8080',
      'https://127.0.0.1:8070',
      'https://127.0.0.1:8081',
    ]);
    expect(gateway.nodes[0]?.harness_port).to.equal(8085);
    expect(tls).to.deep.equal({ cert_file: resolve('server.pem'), key_file: resolve('server.key') });
    expect(nats.tls).to.deep.equal({ ca_file: '/ca.pem' });
  });

  it('reads the documented example', () => {
    const { gateway } = readTopology(EXAMPLE);
    expect(gateway.nodes.map(({ id }) => id)).to.deep.equal(['node-1']);
  });
});

const TLS = { cert_file: 'server.pem', key_file: 'server.key' };

const judges = (name: string, more: object): object => ({
  evaluators: { judges: { [name]: { base_url: 'http://a', model: 'm', ...more } } },
});

describe('faults of a topology file', () => {
  const persistence = (more: object): object => ({
    gateway: { nodes: [{}], completion_persistence: more },
  });
  const WRONG: readonly (readonly [string, object])[] = [
    ['rollout', { rollout: 8080 }],
    ['rollout.host', { rollout: { host: '' } }],
    ['rollout.host', { rollout: { host: '0.0.0.0:8080' } }],
    ['gateway.nodes[0].host', node({ host: '[::1]' })],
    ['rollout.port', { rollout: { port: 0 } }],
    ['rollout.port', { rollout: { port: '8080' } }],
    ['rollout.public_url', { rollout: { public_url: 'mesh:8080' } }],
    ['rollout.save_dir', { rollout: { save_dir: '' } }],
    ['rollout.dispatch_poll_interval_seconds', { rollout: { dispatch_poll_interval_seconds: 0 } }],
    ['rollout.callback_grace_seconds', { rollout: { callback_grace_seconds: -1 } }],
    ['rollout.callback_hosts[1]', { rollout: { callback_hosts: ['trainer:9000', 'http://trainer'] } }],
    ['gateway.nodes[0].inference.min_sessions', node({ inference: { min_sessions: 2 } })],
    ['gateway.nodes[0].inference.min_sessions', node({ inference: { min_sessions: 3, max_sessions: 2 } })],
    ['rollout.callback_hosts[0]', { rollout: { callback_hosts: ['::1'] } }],
    ['rollout.http_max_connections', { rollout: { http_max_connections: 0 } }],
    ['rollout.http_max_keepalive_connections', { rollout: { http_max_keepalive_connections: 1.5 } }],
    ['rollout.cleanup_max_concurrency', { rollout: { cleanup_max_concurrency: 0 } }],
    ['rollout.cleanup_max_attempts', { rollout: { cleanup_max_attempts: 11 } }],
    ['rollout.cleanup_retry_backoff_seconds', { rollout: { cleanup_retry_backoff_seconds: -1 } }],
    ['rollout.nonsense', { rollout: { nonsense: 1 } }],
    ['gateway.nodes', { gateway: {} }],
    ['gateway.nodes', { gateway: { nodes: [] } }],
    ['gateway.heartbeat_interval_seconds', { gateway: { nodes: [{}], heartbeat_interval_seconds: 0 } }],
    ['gateway.rollout_server_url', { gateway: { nodes: [{}], rollout_server_url: 'x' } }],
    ['gateway.completion_persistence.enabled', persistence({ enabled: false })],
    ['gateway.completion_persistence.write_workers', persistence({ write_workers: 65 })],
    ['gateway.completion_persistence.batch_size', persistence({ batch_size: 0 })],
    ['gateway.completion_persistence.nonsense', persistence({ nonsense: 1 })],
    ['gateway.nodes[0].id', node({ id: 'a b' })],
    ['gateway.nodes[1].id', { gateway: { nodes: [{ id: 'a' }, { id: 'a' }] } }],
    ['gateway.nodes[0].port', node({ port: 70_000 })],
    ['gateway.nodes[0].public_url', node({ public_url: 'ftp://x' })],
    ['gateway.nodes[0].model_served', node({ model_served: 1 })],
    ['gateway.nodes[0].inference.engine', node({ inference: { engine: 'llama' } })],
    ['gateway.nodes[0].inference.base_url', node({ inference: { base_url: '127.0.0.1:8000' } })],
    ['gateway.nodes[0].inference.scheduler', node({ inference: { scheduler: 'random' } })],
    ['gateway.nodes[0].inference.servers[1]', node({ inference: { servers: ['http://a', 'b:1'] } })],
    [
      'gateway.nodes[0].inference.servers',
      node({ inference: { servers: ['http://a'], scheduler: 'thunderagent' } }),
    ],
    ['gateway.nodes[0].inference.stream', node({ inference: { stream: 'none' } })],
    [
      'gateway.nodes[0].inference.routed_experts',
      node({ inference: { engine: 'llamacpp', routed_experts: EXPERTS } }),
    ],
    [
      'gateway.nodes[0].inference.routed_experts.top_k',
      node({ inference: { routed_experts: { ...EXPERTS, top_k: 9 } } }),
    ],
    [
      'gateway.nodes[0].inference.routed_experts.experts',
      node({ inference: { routed_experts: { ...EXPERTS, experts: 65_537 } } }),
    ],
    ['gateway.nodes[0].inference.max_concurrency', node({ inference: { max_concurrency: 0 } })],
    ['gateway.nodes[0].inference.queue_timeout_seconds', node({ inference: { queue_timeout_seconds: 601 } })],
    ['gateway.nodes[0].inference.api_key_env', node({ inference: { api_key_env: 'sk-0123' } })],
    ['gateway.nodes[0].model_pool[0].alias', pools({ alias: 'judge' })],
    ['gateway.nodes[0].model_pool[1].alias', pools({}, {})],
    ['gateway.nodes[0].model_pool[0].base_url', pools({ base_url: 'x' })],
    ['gateway.nodes[0].model_pool[0].max_active_episodes', pools({ max_active_episodes: 33 })],
    ['gateway.nodes[0].model_pool[0].api_key', pools({ api_key: 'sk-0123' })],
    ['gateway.nodes[0].sglang', node({ sglang: {} })],
    ['gateway.nodes[0].max_init_workers', node({ max_init_workers: 0 })],
    ['gateway.nodes[0].max_run_workers', node({ max_run_workers: 0.5 })],
    ['gateway.nodes[0].max_postrun_workers', node({ max_postrun_workers: '4' })],
    ['gateway.nodes[0].max_ready', node({ max_ready: -1 })],
    ['gateway.nodes[0].max_postrun_ready', node({ max_postrun_ready: 1.5 })],
    ['gateway.nodes[0].default_runtime.gpus', node({ default_runtime: { gpus: -1 } })],
    ['gateway.nodes[0].images_low_percent', node({ images_low_percent: 90 })],
    ['gateway.nodes[0].default_runtime.prepare[0].command', node({ default_runtime: { prepare: [{}] } })],
    ['gateway.nodes[0].runtime_prewarm_port', node({ runtime_prewarm_port: -1 })],
    ['gateway.nodes[0].harness_executor_port', node({ harness_executor_port: 0 })],
    ['gateway.nodes[0].evaluator_port', node({ evaluator_port: 1e6 })],
    ['gateway.nodes[0].images_dir', node({ images_dir: '' })],
    ['gateway.nodes[0].cache_dir', node({ cache_dir: 3 })],
    ['gateway.nodes[0].backend_plugins[0]', node({ backend_plugins: ['../mine.ts'] })],
    ['gateway.nodes[0].podman.socket', node({ podman: { socket: 'podman.sock' } })],
    ['evaluators.judge', { evaluators: { judge: {} } }],
    ['evaluators.judges.a b', judges('a b', {})],
    ['evaluators.judges.a.base_url', judges('a', { base_url: 'file:///etc/passwd' })],
    ['evaluators.judges.a.model', judges('a', { model: '' })],
    ['evaluators.judges.a.api_key', judges('a', { api_key: 'sk-0123' })],
    ['evaluators.judges.a.api_key_env', judges('a', { api_key_env: 'sk-0123' })],
    ['nats.url', { nats: { url: 'http://127.0.0.1:4222' } }],
    ['nats.port', { nats: { port: 0 } }],
    ['reconstructor.port', { reconstructor: { port: 0 } }],
    ['reconstructor.plugin_timeout_seconds', { reconstructor: { plugin_timeout_seconds: 0 } }],
    ['access.tokens_file', { access: { tokens_file: '' } }],
    ['retention.acked_days', { retention: { acked_days: -1 } }],
    ['data_dir', { data_dir: '' }],
    ['tls.key_file', { tls: { cert_file: 'a' } }],
    ['nats.tls.key_file', { nats: { tls: { cert_file: 'a' } } }],
    ['rollout.public_url', { tls: TLS, rollout: { public_url: 'http://mesh:8080' } }],
    ['gateway.nodes[0].public_url', { tls: TLS, ...node({ public_url: 'http://mesh:8081' }) }],
    ['nonsense', { nonsense: 1 }],
  ];
  for (const [field, file] of WRONG) {
    it(`${field}: ${JSON.stringify(file)}`, () => {
      expect(faultsIn(stringify(file))).to.deep.equal([field]);
    });
  }

  it('has a case for every part', () => {
    expect(WRONG.map(([field]) => field.replace(/\..*/, ''))).to.include.members(
      Object.keys(topologySchema.shape),
    );
  });

  it('come all at once', () => {
    const file = { rollout: { port: 0, x: 1, y: 1 }, gateway: { nodes: [{ port: 0 }, { id: '' }] }, z: 1 };
    expect(faultsIn(stringify(file))).to.have.members([
      'rollout.port',
      'rollout.x',
      'rollout.y',
      'gateway.nodes[0].port',
      'gateway.nodes[1].id',
      'z',
    ]);
  });

  it('name the line where the text is not YAML, a key that is there twice included', () => {
    expect(faultsIn('rollout: {port: 1\n')[0]).to.match(/^line \d+, column \d+$/);
    expect(faultsIn('data_dir: a\ndata_dir: b\n')).to.deep.equal(['line 2, column 1']);
  });

  it('name a file that is not there', () => {
    expect(() => readTopology('not-there.yaml')).to.throw(PolarError, /not-there\.yaml/);
  });
});

describe('the environment of a service', () => {
  const { topology } = readCommonConfig({});
  const two = parseTopology(stringify({ gateway: { nodes: [{ id: 'a' }, { id: 'b' }] } }), 'two');

  it('chooses NATS: the environment, the topology, the local server', () => {
    expect(readCommonConfig({}).nats.url).to.equal('nats://127.0.0.1:4222');
    expect(readCommonConfig({ POLAR_NATS_URL: 'nats://a:1,b:2' }).nats.url).to.equal('nats://a:1,nats://b:2');
  });

  it('refuses a log level that there is not', () => {
    expect(() => readCommonConfig({ POLAR_LOG_LEVEL: 'loud' })).to.throw(PolarError, /POLAR_LOG_LEVEL/);
  });

  it('needs a node id where there are several nodes', () => {
    expect(nodeOf(topology, {}).id).to.equal(hostname());
    expect(nodeOf(two, { POLAR_GATEWAY_NODE_ID: 'b' }).id).to.equal('b');
    expect(() => nodeOf(two, {})).to.throw(PolarError, /one of a, b/);
    expect(() => nodeOf(two, { POLAR_GATEWAY_NODE_ID: 'c' })).to.throw(PolarError, /not c/);
  });
});
