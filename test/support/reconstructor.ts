// A reconstructor in this process, and what other services would send it.
import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { Client } from '@connectrpc/connect';
import { type BlobRef, BlobRefSchema } from '../../gen/ts/polar/common/v1/blob_pb.js';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type Completion, CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import type { Policy } from '../../gen/ts/polar/event/v1/policy_pb.js';
import {
  type BuildWork,
  type Fact,
  FactSchema,
  type GroupReady,
  GroupReadySchema,
  WorkSchema,
} from '../../gen/ts/polar/event/v1/work_pb.js';
import {
  type StreamTrajectoriesRequestSchema,
  type StreamTrajectoriesResponse,
  TrajectoryService,
} from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  type Trajectory,
  type TrajectoryBatch,
  TrajectorySchema,
} from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { parseTopology } from '../../services/common/config/topology.ts';
import { PolarError } from '../../services/common/errors.ts';
import { TRAJECTORY_READ_BYTES_MAX } from '../../services/common/limits.ts';
import { createLogger } from '../../services/common/logger.ts';
import { type BlobStore, createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { PolicyWatch } from '../../services/common/nats/policy.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { ReconstructorService } from '../../services/reconstructor/service.ts';
import { freePort } from './nats.ts';

export type TrajectoryClient = Client<typeof TrajectoryService>;

export interface TestReconstructor extends AsyncDisposable {
  readonly url: string;
  readonly client: TrajectoryClient;
}

export async function startReconstructor(
  natsUrl: string,
  options: { readonly port?: number; readonly schedulerPort?: number; readonly pluginsDir?: string } = {},
): Promise<TestReconstructor> {
  const port = options.port ?? (await freePort());
  const rollout = options.schedulerPort === undefined ? '' : `rollout: { port: ${options.schedulerPort} }\n`;
  const plugins = options.pluginsDir === undefined ? '' : `, plugins_dir: ${options.pluginsDir}`;
  const own = `reconstructor: { host: 127.0.0.1, port: ${port}, plugin_timeout_seconds: 5${plugins} }`;
  const topology = parseTopology(`${rollout}${own}`, 'test');
  const stop = new AbortController();
  const config = { topology, nats: { url: natsUrl }, logLevel: 'silent', lifeline: false, token: undefined };
  const service = await ReconstructorService.start(config, createLogger('test', 'silent'), stop.signal);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    client: createServiceClient(TrajectoryService, url, { readMaxBytes: TRAJECTORY_READ_BYTES_MAX }),
    async [Symbol.asyncDispose]() {
      stop.abort(new PolarError('SHUTTING_DOWN', 'test ends'));
      await service[Symbol.asyncDispose]();
    },
  };
}

/** What the other services do, at the other end of NATS. */
export class Mesh {
  readonly bus: Bus;
  readonly blobs: BlobStore;

  private constructor(bus: Bus) {
    this.bus = bus;
    this.blobs = createBlobStore(bus);
  }

  static async open(url: string): Promise<Mesh> {
    return new Mesh(await openBus({ url, name: 'test' }));
  }

  close(): Promise<void> {
    return this.bus.close();
  }

  /** As llm-proxy does; the range is what it tells at the close of the session. */
  async record(session: string, attempt: number, records: readonly Completion[]) {
    const seqs: number[] = [];
    for (const record of records) {
      const bytes = toBinary(CompletionSchema, record);
      seqs.push(await publish(this.bus, this.blobs, subjects.completion(session, attempt), bytes));
    }
    return {
      calls: records.length,
      firstSeq: BigInt(seqs[0] ?? 0),
      lastSeq: BigInt(seqs.at(-1) ?? 0),
    };
  }

  /** As the scheduler does. */
  async askForBuild(
    session: string,
    attempt: number,
    strategy: string,
    calls: BuildWork['calls'],
    config?: JsonObject,
  ): Promise<void> {
    const work = create(WorkSchema, {
      ref: { sessionId: session, attempt, nodeId: 'n1', bootId: 'b1', taskId: 'task', sampleIndex: 0 },
      kind: {
        case: 'build',
        value: {
          builder: { strategy, ...(config !== undefined && { config }) },
          timeoutMs: 60_000n,
          ...(calls !== undefined && { calls }),
        },
      },
    });
    await publish(this.bus, this.blobs, subjects.work('build', ''), toBinary(WorkSchema, work));
  }

  /** The next fact of the session; waits for it. */
  async fact(session: string, waitMs = 40_000): Promise<Fact> {
    const until = performance.now() + waitMs;
    for (let seq = 1; performance.now() < until; ) {
      const message = await this.bus.jsm.streams
        .getMessage(STREAMS.facts.name, { seq })
        .catch(() => undefined);
      if (message === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        continue;
      }
      seq++;
      const fact = fromBinary(FactSchema, message.data);
      if (fact.ref?.sessionId === session) return fact;
    }
    throw new Error(`no fact of ${session}`);
  }

  /** As the scheduler does when all sessions of a group have ended; the batch id. */
  async announce(group: Partial<GroupReady> & { readonly taskId: string }): Promise<number> {
    const { taskId, groupId = 'g0', sessions = [], readyMs = 1_700_000_000_000n } = group;
    const message = create(GroupReadySchema, { taskId, groupId, sessions, readyMs });
    const bytes = toBinary(GroupReadySchema, message);
    return await publish(this.bus, this.blobs, subjects.trajectory(taskId, groupId), bytes, {
      createOnce: true,
    });
  }

  /** A group with a trace of 4 ids for each reward, sampled under the policy versions named beside it. */
  async announceGroup(
    taskId: string,
    sessions: readonly { readonly reward: number; readonly min?: number; readonly max?: number }[],
  ): Promise<number> {
    const results: object[] = [];
    for (const [sampleIndex, { reward, min = 0, max = min }] of sessions.entries()) {
      const sessionId = `${taskId}-${sampleIndex}`;
      const trajectory = await this.putTrajectory(sessionId, 4, {
        policyVersionMin: BigInt(min),
        policyVersionMax: BigInt(max),
      });
      results.push({ sessionId, sampleIndex, attempt: 1, outcome: Outcome.COMPLETED, reward, trajectory });
    }
    return await this.announce({ taskId, sessions: results as GroupReady['sessions'] });
  }

  /** As llm-proxy does when a trainer publishes a version. */
  async publishVersion(policyVersion: number): Promise<void> {
    const stop = new AbortController();
    const watch = await PolicyWatch.open({ bus: this.bus, signal: stop.signal });
    const change = (policy: Policy): Policy => ({ ...policy, policyVersion: BigInt(policyVersion) });
    await watch.update(change, stop.signal);
    stop.abort();
  }

  /** A group of one session with a trajectory of a trace of so many ids. */
  async announceTrace(taskId: string, ids: number, sessions = 1): Promise<number> {
    const results: GroupReady['sessions'] = [];
    for (let i = 0; i < sessions; i++) {
      const sessionId = `${taskId}-${i}`;
      const trajectory = await this.putTrajectory(sessionId, ids);
      results.push(
        create(GroupReadySchema, {
          sessions: [
            { sessionId, sampleIndex: i, attempt: 1, outcome: Outcome.COMPLETED, reward: 1, trajectory },
          ],
        }).sessions[0]!,
      );
    }
    return await this.announce({ taskId, sessions: results });
  }

  async putTrajectory(sessionId: string, ids: number, fields: Partial<Trajectory> = {}): Promise<BlobRef> {
    const responseIds = new Uint8Array(Int32Array.from({ length: ids }, (_, i) => i).buffer);
    const lossMask = new Uint8Array(ids).fill(1);
    const logprobs = new Uint8Array(new Float32Array(ids).fill(-0.5).buffer);
    const traces = [{ responseIds, lossMask, logprobs }];
    const trajectory = create(TrajectorySchema, { ...fields, sessionId, traces } as object);
    const ref = await this.blobs.put(toBinary(TrajectorySchema, trajectory));
    return create(BlobRefSchema, ref);
  }
}

/** A stream as a trainer reads it. */
export class Trainer {
  readonly #stop = new AbortController();
  readonly #messages: AsyncIterator<StreamTrajectoriesResponse>;
  #waiting: TrajectoryBatch[] = [];

  constructor(
    client: TrajectoryClient,
    consumer: string,
    maxUnacked = 16,
    taskId = '',
    request: MessageInitShape<typeof StreamTrajectoriesRequestSchema> = {},
  ) {
    const stream = client.streamTrajectories(
      { consumer, maxUnacked, taskId, ...request },
      { signal: this.#stop.signal },
    );
    this.#messages = stream[Symbol.asyncIterator]();
  }

  /** The next message, progress included. */
  async message(): Promise<StreamTrajectoriesResponse> {
    const { value, done } = await this.#messages.next();
    if (done === true) throw new Error('the stream ended');
    return value;
  }

  /** The next batch. */
  async batch(): Promise<TrajectoryBatch> {
    for (;;) {
      const first = this.#waiting.shift();
      if (first !== undefined) return first;
      const { batch, more } = await this.message();
      if (batch !== undefined) this.#waiting = [batch, ...more];
    }
  }

  async batches(count: number): Promise<TrajectoryBatch[]> {
    const found: TrajectoryBatch[] = [];
    while (found.length < count) found.push(await this.batch());
    return found;
  }

  /** What ends the stream. */
  async error(): Promise<PolarError> {
    try {
      for (;;) await this.message();
    } catch (error) {
      return error as PolarError;
    }
  }

  close(): void {
    this.#stop.abort();
  }
}
