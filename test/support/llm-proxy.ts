// An llm-proxy for a test, in this process or as a child, with what a test does around it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Completion, CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { AttemptRefSchema, CapabilitySchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { ProxyService } from '../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { unpackIds } from '../../services/common/columns.ts';
import type { NodeTopology } from '../../services/common/config/topology.ts';
import { newSecret, sha256 } from '../../services/common/ids.ts';
import { createLogger } from '../../services/common/logger.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { checkOut } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { proxySocketOf } from '../../services/common/proxy-socket.ts';
import { readConfig } from '../../services/llm-proxy/config.ts';
import { LlmProxyService } from '../../services/llm-proxy/service.ts';
import { programOf } from '../../tools/built.mjs';
import { freePort, startNats, type TestNats } from './nats.ts';

const MAIN = programOf(join(import.meta.dirname, '../../services/llm-proxy/main.ts'));

export interface ProxySetup {
  readonly engineUrl: string;
  readonly kind: NodeTopology['inference']['engine'];
  readonly modelServed?: string;
  /** More keys of the node's `inference`. */
  readonly inference?: Readonly<Record<string, unknown>>;
  /** More keys of the node. */
  readonly node?: Readonly<Record<string, unknown>>;
  /** More environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** NATS, a topology with one node, and the proxy of that node. */
export class TestProxy implements AsyncDisposable {
  readonly nats: TestNats;
  readonly bus: Bus;
  readonly url: string;
  /** Where sandboxes are to be led to. */
  readonly socket: string;
  readonly #folder: string;
  readonly #env: Record<string, string>;
  #child: ChildProcess | undefined;
  #service: LlmProxyService | undefined;
  #stop = new AbortController();

  private constructor(nats: TestNats, bus: Bus, port: number, setup: ProxySetup, id = 'n1') {
    this.nats = nats;
    this.bus = bus;
    this.url = `http://127.0.0.1:${port}`;
    this.#folder = mkdtempSync(join(tmpdir(), 'polar-test-proxy-'));
    this.socket = proxySocketOf(this.#folder, id);
    const topology = join(this.#folder, 'topology.yaml');
    const node = {
      id,
      host: '127.0.0.1',
      port,
      model_served: setup.modelServed ?? '',
      inference: { engine: setup.kind, base_url: setup.engineUrl, ...setup.inference },
      ...setup.node,
    };
    writeFileSync(topology, JSON.stringify({ data_dir: this.#folder, gateway: { nodes: [node] } }));
    this.#env = {
      POLAR_TOPOLOGY: topology,
      POLAR_NATS_URL: nats.url,
      POLAR_LOG_LEVEL: 'silent',
      ...setup.env,
    };
  }

  static async prepare(setup: ProxySetup): Promise<TestProxy> {
    const nats = await startNats();
    const bus = await openBus({ url: nats.url, name: 'test' });
    return new TestProxy(nats, bus, await freePort(), setup);
  }

  /** Another proxy of the same mesh, to be started. */
  static async beside(one: TestProxy, setup: ProxySetup): Promise<TestProxy> {
    const bus = await openBus({ url: one.nats.url, name: 'test' });
    const nats = { ...one.nats, [Symbol.asyncDispose]: async () => {} } as TestNats;
    return new TestProxy(nats, bus, await freePort(), setup, 'n2');
  }

  /** In this process. */
  static async start(setup: ProxySetup): Promise<TestProxy> {
    const proxy = await TestProxy.prepare(setup);
    await proxy.startHere();
    return proxy;
  }

  async startHere(): Promise<void> {
    this.#stop = new AbortController();
    const config = readConfig(this.#env);
    this.#service = await LlmProxyService.start(
      config,
      createLogger('llm-proxy', 'silent'),
      this.#stop.signal,
    );
  }

  async stopHere(): Promise<void> {
    this.#stop.abort();
    await this.#service?.[Symbol.asyncDispose]();
    this.#service = undefined;
  }

  /** The process that `spawn` has started. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** As a process of its own; with another command than node's alone, or more environment. */
  async spawn(command: readonly string[] = [process.execPath], more: NodeJS.ProcessEnv = {}): Promise<void> {
    const env = { ...process.env, ...this.#env, ...more };
    const [file = process.execPath, ...args] = [...command, MAIN];
    this.#child = spawn(file, args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
    const { url } = this;
    for (let i = 0; i < 600; i++) {
      if (
        await fetch(`${url}/readyz`).then(
          (answer) => answer.ok,
          () => false,
        )
      )
        return;
      if (this.#child.exitCode !== null) throw new Error(`llm-proxy ended with ${this.#child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error('llm-proxy is not ready');
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    this.#child = undefined;
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const exited = once(child, 'exit');
    child.kill(signal);
    const [code] = (await exited) as [number | null];
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.stopHere();
    await this.bus.close();
    await this.nats[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Let a session in; returns its capability. */
  async admit(
    sessionId: string,
    attempt = 1,
    more: MessageInitShape<typeof CapabilitySchema> = {},
  ): Promise<string> {
    const secret = newSecret();
    const capability = create(CapabilitySchema, {
      ref: create(AttemptRefSchema, { sessionId, attempt, nodeId: 'n1', bootId: 'b1', taskId: 't' }),
      digest: sha256(secret),
      expireMs: BigInt(Date.now() + 600_000),
      modelName: 'policy',
      ...more,
    });
    const kv = await this.bus.kv('capabilities');
    await kv.put(`${sessionId}.${attempt}`, toBinary(CapabilitySchema, capability));
    return secret;
  }

  async revoke(sessionId: string, attempt = 1): Promise<void> {
    const kv = await this.bus.kv('capabilities');
    await kv.delete(`${sessionId}.${attempt}`);
  }

  /** POST /s/<capability>/v1/chat/completions */
  chat(capability: string, body: object, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}/s/${capability}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...init,
    });
  }

  get client() {
    return createPlainClient(ProxyService, this.url);
  }

  /** The stored records of an attempt. */
  async records(sessionId: string, attempt = 1): Promise<Completion[]> {
    const blobs = createBlobStore(this.bus);
    const subject = subjects.completion(sessionId, attempt);
    const found: Completion[] = [];
    for (let seq = 1; ; ) {
      const message = await this.bus.direct
        .getMessage(STREAMS.completions.name, { seq, next_by_subj: subject })
        .catch(() => undefined);
      if (message === undefined) return found;
      const bytes = await checkOut(blobs, { data: message.data, headers: message.header });
      found.push(fromBinary(CompletionSchema, bytes));
      seq = message.seq + 1;
    }
  }
}

/** The whole prompts of an attempt's records, put together from what each takes from its base. */
export function promptsOf(records: readonly Completion[]): number[][] {
  const prompts: number[][] = [];
  const wholes: number[][] = [];
  for (const record of records) {
    const base = record.baseIndex < 0 ? [] : (wholes[record.baseIndex] as number[]);
    const prompt = [...base.slice(0, record.baseLength), ...unpackIds(record.promptSuffixIds)];
    prompts.push(prompt);
    wholes.push([...prompt, ...unpackIds(record.sampledIds)]);
  }
  return prompts;
}

/** The data of the events of a stream, and whether it ended by itself. */
export async function readEvents(answer: Response): Promise<{ events: string[]; whole: boolean }> {
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const bytes of answer.body as ReadableStream<Uint8Array>)
      text += decoder.decode(bytes, { stream: true });
  } catch {
    return { events: eventsIn(text), whole: false };
  }
  return { events: eventsIn(text), whole: true };
}

const eventsIn = (text: string): string[] =>
  text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length));
