// A node for tests of the scheduler: it sends heartbeats and answers work over NATS as the real services do, without
// sandboxes. It stands in for the reconstructor too. What it does with each kind of work can be changed at any time.
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import {
  type AttemptRef,
  FactSchema,
  HeartbeatReplySchema,
  HeartbeatSchema,
  type OfferSchema,
  RevokeSchema,
  type Work,
  WorkSchema,
} from '../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { failure, type Reason } from '../../services/common/errors.ts';
import { newId } from '../../services/common/ids.ts';
import { createLogger } from '../../services/common/logger.ts';
import { type BlobStore, createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { consume } from '../../services/common/nats/consume.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { CONSUMERS, STREAMS } from '../../services/common/nats/streams.ts';
import { type FactKind, subjects, type WorkKind } from '../../services/common/nats/subjects.ts';

export type Answer = Exclude<MessageInitShape<typeof FactSchema>['kind'], undefined>;
/** The fact that work leads to; undefined: the work is taken and nothing is heard of it. */
export type Behaviour = (work: Work) => Answer | undefined | Promise<Answer | undefined>;

export interface FakeNodeOptions {
  readonly id?: string;
  readonly bootId?: string;
  readonly backends?: string[];
  /** Of bubblewrap. */
  readonly images?: string[];
  /** In place of all that. */
  readonly offers?: MessageInitShape<typeof OfferSchema>[];
  readonly gpus?: number;
  readonly prepareSlots?: number;
  readonly runSlots?: number;
  readonly readySlots?: number;
  readonly evaluateSlots?: number;
  readonly heartbeatMs?: number;
  /** False: build work is left to another node. */
  readonly builds?: boolean;
  readonly on?: Partial<Record<WorkKind, Behaviour>>;
}

export interface FakeNode extends AsyncDisposable {
  readonly id: string;
  readonly bootId: string;
  /** What it does with work, by kind. */
  readonly on: Record<WorkKind, Behaviour>;
  /** Work as it came, in order. */
  readonly taken: Work[];
  /** Attempts that have a sandbox here. */
  readonly sandboxes: Map<string, AttemptRef>;
  /** Attempts that were revoked here, each as often as it was. */
  readonly revoked: AttemptRef[];
  fact(ref: AttemptRef, answer: Answer): Promise<void>;
  /** What one that is stopped says at last. */
  leave(): Promise<void>;
}

export const failed = (stage: WorkKind, reason: Reason, message = 'on purpose'): Answer => ({
  case: 'failed',
  value: { stage, failure: failure(reason, message) },
});

const ready: Behaviour = ({ ref }) => ({
  case: 'ready',
  value: { runtimeId: `rt-${ref?.sessionId}-${ref?.attempt}` },
});
export const ran: Behaviour = () => ({
  case: 'ran',
  value: { outcome: Outcome.COMPLETED, calls: { calls: 2, firstSeq: 1n, lastSeq: 2n } },
});
/** As the session's caller said. */
const closed: Behaviour = ({ kind: { value } }) => {
  if (value?.$typeName !== 'polar.event.v1.CloseWork') return undefined;
  const { outcome, failure } = value;
  const calls = { calls: 2, firstSeq: 1n, lastSeq: 2n };
  return { case: 'ran', value: { outcome, calls, ...(failure && { failure }) } };
};
const evaluated: Behaviour = () => ({
  case: 'evaluated',
  value: { reward: 0.5, evaluation: { passed: 3 } },
});

const keyOf = ({ sessionId, attempt }: AttemptRef): string => `${sessionId}.${attempt}`;

export async function startFakeNode(natsUrl: string, options: FakeNodeOptions = {}): Promise<FakeNode> {
  const bus = await openBus({ url: natsUrl, name: options.id ?? 'node-1' });
  return new RunningNode(bus, options);
}

class RunningNode implements FakeNode {
  readonly id: string;
  readonly bootId: string;
  readonly on: Record<WorkKind, Behaviour>;
  readonly taken: Work[] = [];
  readonly sandboxes = new Map<string, AttemptRef>();
  readonly revoked: AttemptRef[] = [];
  readonly #bus: Bus;
  readonly #blobs: BlobStore;
  readonly #options: FakeNodeOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[];

  constructor(bus: Bus, options: FakeNodeOptions) {
    this.id = options.id ?? 'node-1';
    this.bootId = options.bootId ?? newId('boot');
    this.#bus = bus;
    this.#blobs = createBlobStore(bus);
    this.#options = options;
    const build: Behaviour = (work) => this.#built(work);
    this.on = { prepare: ready, run: ran, close: closed, build, evaluate: evaluated, ...options.on };
    bus.nc.subscribe(subjects.control(this.id), {
      callback: (_error, message) => this.#revoke(fromBinary(RevokeSchema, message.data).attempts),
    });
    const kinds: WorkKind[] = ['prepare', 'run', 'close', 'evaluate'];
    if (options.builds !== false) kinds.push('build');
    this.#running = [this.#beat(), ...kinds.map((kind) => this.#consume(kind))];
  }

  async fact(ref: AttemptRef, kind: Answer): Promise<void> {
    const bytes = toBinary(FactSchema, create(FactSchema, { ref, durationMs: 7n, kind }));
    const subject = subjects.fact(kind.case as FactKind, ref.nodeId);
    await publish(this.#bus, this.#blobs, subject, bytes, {
      msgId: `${ref.sessionId}:${ref.attempt}:${kind.case}`,
      signal: this.#stop.signal,
    });
  }

  async leave(): Promise<void> {
    this.#stop.abort();
    await Promise.allSettled(this.#running);
    await this.#bus.nc.request(subjects.heartbeat(this.id), this.#heartbeat(true), { timeout: 1_000 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.allSettled(this.#running);
    await this.#bus.close();
  }

  #consume(kind: WorkKind): Promise<void> {
    return consume({
      bus: this.#bus,
      blobs: this.#blobs,
      log: createLogger('fake-node', 'silent'),
      signal: this.#stop.signal,
      stream: STREAMS.work.name,
      consumer: CONSUMERS.work(kind, this.id, 16),
      concurrency: 64,
      handle: ({ bytes }) => this.#take(fromBinary(WorkSchema, bytes)),
    });
  }

  async #take(work: Work): Promise<void> {
    const { ref, kind } = work;
    this.taken.push(work);
    if (ref === undefined || kind.case === undefined) throw new Error('work without a ref or kind');
    if (kind.case === 'prepare' && ref.bootId !== this.bootId) return;
    if (kind.case === 'prepare') this.sandboxes.set(keyOf(ref), ref);
    const answer = await this.on[kind.case](work);
    if (answer !== undefined) await this.fact(ref, answer);
  }

  async #built({ ref }: Work): Promise<Answer> {
    const trajectory = await this.#blobs.put(Buffer.from(`trajectory of ${ref?.sessionId}`));
    return { case: 'built', value: { trajectory, stats: { calls: 2, traces: 1 } } };
  }

  #revoke(refs: readonly AttemptRef[]): void {
    this.revoked.push(...refs);
    for (const ref of refs) this.sandboxes.delete(keyOf(ref));
  }

  async #beat(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const reply = await this.#bus.nc
        .request(subjects.heartbeat(this.id), this.#heartbeat(), { timeout: 1_000 })
        .catch(() => undefined);
      if (reply !== undefined) this.#revoke(fromBinary(HeartbeatReplySchema, reply.data).revoked);
      await sleep(this.#options.heartbeatMs ?? 100, signal);
    }
  }

  #heartbeat(leaving = false): Uint8Array {
    const { backends, images, offers, gpus, prepareSlots, runSlots, readySlots, evaluateSlots } =
      this.#options;
    const heartbeat = create(HeartbeatSchema, {
      nodeId: this.id,
      bootId: this.bootId,
      backends: backends ?? ['bubblewrap', 'process'],
      defaultBackend: 'bubblewrap',
      prepareSlots: prepareSlots ?? 4,
      runSlots: runSlots ?? 4,
      readySlots: readySlots ?? 4,
      evaluateSlots: evaluateSlots ?? 4,
      offers: offers ?? [
        { backend: 'bubblewrap', images: images ?? [], gpusClaimed: true },
        { backend: 'docker', others: true, gpusClaimed: true, gpusFromCreation: true },
      ],
      gpus: gpus ?? 0,
      attempts: [...this.sandboxes.values()],
      leaving,
      proxyUrl: 'http://127.0.0.1:9',
    });
    return toBinary(HeartbeatSchema, heartbeat);
  }
}
