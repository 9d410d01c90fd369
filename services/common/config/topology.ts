// topology.yaml: one file configures the mesh. Keys that the reference system has keep their names, meaning and
// defaults; what is ours is marked [mesh]. See docs/topology.md.
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import { poolAliasSchema } from '../specs/model-pools.ts';
import { runtimeSchema } from '../specs/runtime.ts';
import { PLUGIN_PATH } from '../specs/strategies.ts';
import { resolved, serverCertificates } from './certificates.ts';
import { parseStrict, readText } from './faults.ts';
import { port, variableName } from './fields.ts';
import { nats } from './nats.ts';
import { diskFault, nodeDisk } from './node-disk.ts';
import { nodeGpus } from './node-gpus.ts';
import { checkSchemes, publicUrl, type Scheme, schemeOf } from './public-url.ts';
import { callbackHosts, queues } from './rollout.ts';

const host = z
  .string()
  .refine(
    (name) => isIP(name) !== 0 || /^[^\s:/[\]]+$/.test(name),
    'must be a name or address alone: the port is a key of its own',
  );
const positive = z.number().positive();
const count = z.int().positive();

const URL_WANTED = 'must be an http(s) URL with a host';
const url = z
  .string()
  .refine((value) => /^https?:\/\/[^/\s]+/.test(value) && URL.canParse(value), URL_WANTED)
  .transform((value) => value.replace(/\/+$/, ''));
const optionalUrl = z
  .union([z.literal('').transform(() => undefined), z.null().transform(() => undefined), url], URL_WANTED)
  .optional();

const listener = (defaultPort: number) =>
  z.strictObject({
    host: host.default('0.0.0.0'),
    port: port.default(defaultPort),
    public_url: optionalUrl,
  });

const rollout = z.strictObject({
  queues,
  callback_hosts: callbackHosts,
  /** [mesh] Name of the scheduler's variable that holds the key which callbacks are signed with. */
  callback_secret_env: variableName.optional(),
  host: host.default('0.0.0.0'),
  port: port.default(8080),
  public_url: optionalUrl,
  save_dir: z.string().min(1).nullable().default(null),
  dispatch_poll_interval_seconds: positive.default(1),
  callback_grace_seconds: z.number().min(0).default(120),
  http_max_connections: count.default(1024),
  http_max_keepalive_connections: count.default(256),
  cleanup_max_concurrency: count.default(128),
  cleanup_max_attempts: z.int().min(1).max(10).default(3),
  cleanup_retry_backoff_seconds: z.number().min(0).default(0.1),
});

const persistence = z.strictObject({
  enabled: z
    .literal(true, 'records are always kept: they are in JetStream before the reply ends')
    .default(true),
  max_field_bytes: count.default(1_048_576),
  queue_size: count.default(16_384),
  write_workers: z.int().min(1).max(64).default(8),
  batch_size: z.int().min(1).max(1024).default(16),
  write_max_attempts: z.int().min(1).max(10).default(3),
  retry_backoff_seconds: z.number().min(0).max(60).default(0.1),
});

/** By name; what they do is the LLM proxy's matter. */
const NORMALISE_RULES = [
  'billing-header',
  'cache-control',
  'private-keys',
  'tool-arguments',
  'reply-names',
  'late-system',
] as const;

export const ENGINE_KINDS = ['sglang', 'vllm', 'llamacpp', 'openai'] as const;
const engineKind = z.enum(ENGINE_KINDS);

/** [mesh] Where the key of an engine is: in the environment of the llm-proxy, or a file that only it can read. */
const engineKey = {
  api_key_env: variableName.optional(),
  api_key_file: z.string().min(1).optional(),
};

const inference = z
  .strictObject({
    engine: engineKind.default('sglang'),
    base_url: url.default('http://127.0.0.1:8000'),
    /** [mesh] Several servers of the same model, in place of base_url. */
    servers: z.array(url).max(256).default([]),
    /** What base_url is: an engine, a router of SGLang whose workers are called directly, or a ThunderAgent. */
    scheduler: z.enum(['none', 'sglang_router', 'thunderagent']).default('none'),
    /** [mesh] `made`: streams are made from whole replies, for what lies in between removes the ids of streams. */
    stream: z.enum(['engine', 'made']).default('engine'),
    /** [mesh] Calls of one proxy at one server; more wait. */
    max_concurrency: count.default(1024),
    /** [mesh] Longest wait for a place; then the harness is to come again. */
    queue_timeout_seconds: positive.max(600).default(30),
    /** [mesh] Sessions that run at once against these servers, over all nodes that name them; null: no cap. */
    max_sessions: count.nullable().default(null),
    /** [mesh] Where it is set, as many as these servers bear run at once, between it and max_sessions. */
    min_sessions: count.nullable().default(null),
    /** [mesh] `token`: a call that goes on from an earlier one is given that one's exact ids and those of what is new. */
    mode: z.enum(['text', 'token']).default('text'),
    /** [mesh] Folder of the model's tokenizer.json, tokenizer_config.json and chat template; without it the engine renders. */
    tokenizer: z.string().min(1).optional(),
    /** [mesh] Share of the calls in token mode whose prompts are rendered from scratch beside them and compared. */
    audit_share: z.number().min(0).max(1).default(0.01),
    /** [mesh] Shape of a mixture-of-experts model; set, SGLang and vLLM are asked which experts it routed each id to. */
    routed_experts: z
      .strictObject({
        layers: z.int().min(1).max(1024),
        top_k: z.int().min(1).max(256),
        experts: count.max(65_536),
      })
      .optional(),
    ...engineKey,
  })
  .refine(({ scheduler, servers }) => scheduler === 'none' || servers.length === 0, {
    path: ['servers'],
    message: 'are not for use with a scheduler, which is at base_url',
  })
  .refine(({ min_sessions: min, max_sessions: max }) => min === null || (max !== null && min <= max), {
    path: ['min_sessions'],
    message: 'needs max_sessions, and must be at most that',
  })
  .refine(
    ({ engine, routed_experts: experts }) => experts === undefined || ['sglang', 'vllm'].includes(engine),
    {
      path: ['routed_experts'],
      message: 'are told by sglang and vllm alone',
    },
  )
  .refine(({ routed_experts: shape }) => shape === undefined || shape.top_k <= shape.experts, {
    path: ['routed_experts', 'top_k'],
    message: 'is above experts',
  });

/** Frozen models that harnesses may call beside the policy. */
const modelPool = z.strictObject({
  alias: poolAliasSchema,
  model: z.string().default(''),
  base_url: url,
  max_concurrency: count.default(32),
  max_active_episodes: count.nullable().default(null),
  /** [mesh] */
  engine: engineKind.default('openai'),
  servers: z.array(url).max(256).default([]),
  stream: z.enum(['engine', 'made']).default('engine'),
  queue_timeout_seconds: positive.max(600).default(30),
  ...engineKey,
});

const modelPools = z
  .array(modelPool)
  .default([])
  .superRefine((pools, ctx) => {
    for (const [i, { alias, max_active_episodes: sessions, max_concurrency: calls }] of pools.entries()) {
      const fault = (field: string, message: string): void =>
        ctx.addIssue({ code: 'custom', path: [i, field], message });
      if (pools.findIndex((one) => one.alias === alias) < i) fault('alias', `${alias} is there twice`);
      if (sessions !== null && sessions > calls) fault('max_active_episodes', 'is above max_concurrency');
    }
  });

/** A container engine on this machine. */
const engineOf = (socket: string) =>
  z.strictObject({
    socket: z.string().startsWith('/', 'must be the path of a Unix socket').default(socket),
    pull: z.enum(['missing', 'never']).default('missing'),
  });

/** Ports of a node that follow `port`, each by its place. */
const FOLLOWING = [
  'runtime_prewarm_port',
  'harness_executor_port',
  'evaluator_port',
  'harness_port',
] as const;
const PORT_MAX = 65_535;

const node = z
  .strictObject({
    id: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 of [A-Za-z0-9._-]')
      .default(() => hostname()),
    /** Of the LLM proxy: what harnesses reach. */
    host: host.default('0.0.0.0'),
    port: port.default(8081),
    public_url: optionalUrl,
    model_served: z.string().default(''),
    inference: inference.prefault({}),
    model_pool: modelPools,
    /** [mesh] Rules that take out of requests what changes without saying anything; default all. */
    normalise: z.array(z.enum(NORMALISE_RULES)).default([...NORMALISE_RULES]),
    /** [mesh] Equal requests in flight share one generation. */
    coalesce: z.boolean().default(true),
    /** [mesh] Images may be at http and https addresses: the engine fetches them, from wherever it gets. */
    image_urls: z.boolean().default(false),
    max_init_workers: count.default(4),
    max_run_workers: count.default(2),
    max_postrun_workers: count.default(4),
    default_runtime: runtimeSchema.nullable().default(null),
    /** [mesh] Ports of the node's other services, on 127.0.0.1; default port + 1, + 2, + 3. */
    runtime_prewarm_port: port.optional(),
    harness_executor_port: port.optional(),
    evaluator_port: port.optional(),
    /** [mesh] With `tls`, where harnesses of runtime process reach the LLM proxy; default port + 4. */
    harness_port: port.optional(),
    /** [mesh] Sandboxes kept in READY; default max_run_workers. 0: one is made when a run slot is free. */
    max_ready: z.int().min(0).optional(),
    /** [mesh] Sandboxes of evaluations that are made ahead of them; default max_run_workers + max_ready. 0: none. */
    max_postrun_ready: z.int().min(0).optional(),
    ...nodeDisk,
    gpus: nodeGpus,
    /** [mesh] Sandboxes that each backend makes a second at most, clones of layers aside. */
    creates_per_s: z
      .strictObject({
        bubblewrap: z.number().positive().optional(),
        process: z.number().positive().optional(),
        docker: z.number().positive().optional(),
        podman: z.number().positive().optional(),
        apptainer: z.number().positive().optional(),
      })
      .prefault({}),
    /** [mesh] Those of them that may come at once. */
    creates_burst: count.default(8),
    /** [mesh] The engine of runtime docker. */
    docker: engineOf('/var/run/docker.sock').prefault({}),
    /** [mesh] Backends of the operator's own, by their paths below `plugins_dir`. */
    backend_plugins: z
      .array(z.string().regex(PLUGIN_PATH, 'must be the path of a .js, .mjs or .ts file'))
      .default([]),
    /** [mesh] The service of runtime podman. */
    podman: engineOf('/run/podman/podman.sock')
      .extend({ map_users: z.boolean().default(false) })
      .prefault({}),
    /** [mesh] Installed harnesses; default <data_dir>/cache. */
    cache_dir: z.string().min(1).optional(),
    /** [mesh] Adapters of harnesses that tasks may name by `import_path`; without it, none may. */
    plugins_dir: z.string().min(1).optional(),
  })
  .superRefine((given, ctx) => {
    const fault = diskFault(given);
    if (fault !== undefined) ctx.addIssue({ code: 'custom', ...fault });
    if (given.port > PORT_MAX) return;
    for (const [i, key] of FOLLOWING.entries()) {
      if (given[key] !== undefined || given.port + i + 1 <= PORT_MAX) continue;
      const message = `must be set, as port + ${i + 1} is above ${PORT_MAX}`;
      ctx.addIssue({ code: 'custom', path: [key], message });
    }
  });

const gateway = z.strictObject({
  heartbeat_interval_seconds: positive.default(30),
  rollout_server_url: optionalUrl,
  nodes: z
    .array(node)
    .min(1, 'at least one node')
    .superRefine((nodes, ctx) => {
      const seen = new Set<string>();
      for (const [i, { id }] of nodes.entries()) {
        if (seen.has(id)) ctx.addIssue({ code: 'custom', path: [i, 'id'], message: `${id} is there twice` });
        seen.add(id);
      }
    }),
  completion_persistence: persistence.prefault({}),
});

/** [mesh] What leaves the store by itself. */
const retention = z.strictObject({
  /** Days that the trajectories and records of a group stay which every consumer has acknowledged; null: for ever. */
  acked_days: z.number().min(0).max(3_650).nullable().default(7),
});

/** [mesh] Who may call the RPCs. */
const access = z.strictObject({
  /** One line for each token, see `polar token`; null: whoever reaches a port may call it. */
  tokens_file: z.string().min(1).nullable().default(null),
});

/** [mesh] Models that evaluators may ask, by the name that tasks give. */
const judge = z.strictObject({
  base_url: url,
  model: z.string().min(1),
  /** Name of the evaluator's variable that holds its key. */
  api_key_env: variableName.optional(),
});
const judgeName = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of [A-Za-z0-9._-]');

const document = z.strictObject({
  rollout: rollout.prefault({}),
  gateway: gateway.prefault({ nodes: [{}] }),
  /** [mesh] */
  evaluators: z.strictObject({ judges: z.record(judgeName, judge).default({}) }).prefault({}),
  /** [mesh] */
  nats: nats.prefault({}),
  /** [mesh] */
  access: access.prefault({}),
  /** [mesh] Certificates of all ports but NATS's; without them the mesh has no TLS. */
  tls: serverCertificates.optional(),
  /** [mesh] */
  retention: retention.prefault({}),
  /** [mesh] TrajectoryService. */
  reconstructor: listener(8070)
    .extend({
      /** Builders that tasks may name by path; without it, none may. */
      plugins_dir: z.string().min(1).optional(),
      /** Of one build by such a builder. */
      plugin_timeout_seconds: positive.max(3600).default(30),
    })
    .prefault({}),
  /** [mesh] State of the local mesh: JetStream's files, sandboxes, logs, caches. */
  data_dir: z.string().min(1).default('.polar'),
});
export const topologySchema = document.superRefine(checkSchemes);

type Parsed = z.output<typeof topologySchema>;
type Node = Parsed['gateway']['nodes'][number];
export type NodeTopology = Omit<Node, 'public_url'> & {
  readonly public_url: string;
  readonly runtime_prewarm_port: number;
  readonly harness_executor_port: number;
  readonly evaluator_port: number;
  readonly harness_port: number;
  readonly max_ready: number;
  readonly max_postrun_ready: number;
  readonly images_dir: string;
  readonly cache_dir: string;
};
export interface Topology extends Omit<Parsed, 'gateway' | 'rollout' | 'reconstructor'> {
  readonly rollout: Parsed['rollout'] & { readonly public_url: string };
  readonly reconstructor: Parsed['reconstructor'] & { readonly public_url: string };
  readonly gateway: Omit<Parsed['gateway'], 'nodes'> & { readonly nodes: readonly NodeTopology[] };
}

/** Read, check and complete a topology file. `base` is the folder that relative paths in it are below. */
export function readTopology(file: string): Topology {
  return parseTopology(readText(file, 'INVALID_CONFIG'), file);
}

/** The same from text. */
export function parseTopology(text: string, file: string): Topology {
  // Null: there is nothing, or comments alone.
  const parsed = parseStrict(topologySchema.nullable(), text, file, 'INVALID_CONFIG');
  return complete(parsed ?? topologySchema.parse({}));
}

function complete(parsed: Parsed): Topology {
  const dataDir = resolve(parsed.data_dir);
  const scheme = schemeOf(parsed);
  return {
    ...parsed,
    tls: parsed.tls && resolved(parsed.tls),
    nats: {
      ...parsed.nats,
      tls: parsed.nats.tls && resolved(parsed.nats.tls),
      creds_file: parsed.nats.creds_file && resolve(parsed.nats.creds_file),
    },
    data_dir: dataDir,
    access: { tokens_file: parsed.access.tokens_file && resolve(parsed.access.tokens_file) },
    rollout: { ...parsed.rollout, public_url: publicUrl(parsed.rollout, scheme) },
    reconstructor: {
      ...parsed.reconstructor,
      public_url: publicUrl(parsed.reconstructor, scheme),
      plugins_dir: parsed.reconstructor.plugins_dir && resolve(parsed.reconstructor.plugins_dir),
    },
    gateway: {
      ...parsed.gateway,
      nodes: parsed.gateway.nodes.map((one) => completeNode(one, dataDir, scheme)),
    },
  };
}

function completeNode(one: Node, dataDir: string, scheme: Scheme): NodeTopology {
  const maxReady = one.max_ready ?? one.max_run_workers;
  return {
    ...one,
    public_url: publicUrl(one, scheme),
    runtime_prewarm_port: one.runtime_prewarm_port ?? one.port + 1,
    harness_executor_port: one.harness_executor_port ?? one.port + 2,
    evaluator_port: one.evaluator_port ?? one.port + 3,
    harness_port: one.harness_port ?? one.port + 4,
    max_ready: maxReady,
    max_postrun_ready: one.max_postrun_ready ?? one.max_run_workers + maxReady,
    inference: { ...one.inference, tokenizer: one.inference.tokenizer && resolve(one.inference.tokenizer) },
    images_dir: resolve(one.images_dir ?? `${dataDir}/images`),
    cache_dir: resolve(one.cache_dir ?? `${dataDir}/cache`),
    plugins_dir: one.plugins_dir && resolve(one.plugins_dir),
  };
}
