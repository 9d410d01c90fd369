// Three readers, one truth: every value of a batch arrives the same in Python, in Node over gRPC, and by curl.
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Boundary } from '../../gen/ts/polar/common/v1/failure_pb.js';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  type TraceSchema,
  type TrajectoryBatch,
  TrajectoryBatchSchema,
} from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { startServer } from '../../services/common/server.ts';
import { startNats } from '../support/nats.ts';
import { readMessage } from '../support/read-batch.ts';
import { compareReaders } from '../support/readers.ts';
import { Mesh, startReconstructor } from '../support/reconstructor.ts';

interface TrajectoryServer extends AsyncDisposable {
  readonly url: string;
  /** Acknowledged ids by consumer. */
  readonly acked: ReadonlyMap<string, readonly bigint[]>;
}

/** A TrajectoryService that sends each consumer the given batches, then waits for it to leave. */
async function trajectoryServer(
  batchesOf: (consumer: string) => readonly TrajectoryBatch[],
): Promise<TrajectoryServer> {
  const acked = new Map<string, readonly bigint[]>();
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    services: [TrajectoryService.typeName],
    routes: (router) => {
      router.service(TrajectoryService, {
        async *streamTrajectories({ consumer }, { signal }) {
          yield {};
          for (const batch of batchesOf(consumer)) yield { batch };
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        },
        ackTrajectories({ consumer, batchIds }) {
          acked.set(consumer, batchIds);
          return { floor: batchIds.at(-1) ?? 0n };
        },
      });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    acked,
    [Symbol.asyncDispose]: () => server.close(),
  };
}

const bytesOf = (view: ArrayBufferView): Uint8Array =>
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** float32 bit patterns that do not survive a way through decimal text or a number. */
const HARD_FLOATS = [
  0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x3f800001, 0xbf7fffff, 0x7f7fffff, 0xff800000, 0x7fc00000,
  0x7fc00123, 0xffc00001,
];
const HARD_IDS = [0, 1, -1, 151_935, 2 ** 31 - 1, -(2 ** 31), 255, 256, 65_536, 16_777_217, 7];

const hardTrace: MessageInitShape<typeof TraceSchema> = {
  promptIds: bytesOf(Int32Array.of(2 ** 31 - 1, 0, -5)),
  responseIds: bytesOf(Int32Array.from(HARD_IDS)),
  lossMask: Uint8Array.of(0, 1, 1, 0, 1, 255, 0, 0, 1, 1, 0),
  logprobs: bytesOf(Uint32Array.from(HARD_FLOATS)),
  spans: [
    { callId: 'c-1', start: 1, length: 2, finishReason: 'tool_calls', policyVersion: 2n ** 64n - 1n },
    { callId: 'c-2', start: 8, length: 2, finishReason: 'stop', policyVersion: 7n },
  ],
};

function largeTrace(tokens: number): MessageInitShape<typeof TraceSchema> {
  const ids = Int32Array.from({ length: tokens }, (_, i) => (i * 2_654_435_761) | 0);
  return {
    promptIds: bytesOf(ids.subarray(0, tokens / 2)),
    responseIds: bytesOf(ids),
    lossMask: Uint8Array.from(ids, (id) => id & 1),
    logprobs: bytesOf(Float32Array.from(ids, (id) => -Math.abs(id) / 2 ** 28)),
  };
}

const BATCHES = [
  create(TrajectoryBatchSchema, {
    batchId: 2n ** 53n + 1n,
    taskId: 'täsk.1',
    groupId: 'g0',
    trajectories: [
      {
        sessionId: 's-0',
        attempt: 2,
        outcome: Outcome.COMPLETED,
        reward: 0.1 + 0.2,
        traces: [hardTrace, {}],
        policyVersionMin: 7n,
        policyVersionMax: 2n ** 64n - 1n,
      },
      { sessionId: 's-1', sampleIndex: 1, outcome: Outcome.TIMEOUT, reward: 0 },
      { sessionId: 's-2', sampleIndex: 2, outcome: Outcome.HARNESS_ERROR, reward: -0.5 },
      {
        sessionId: 's-3',
        sampleIndex: 3,
        outcome: Outcome.INFRASTRUCTURE_ERROR,
        failure: { boundary: Boundary.PROVIDER, reason: 'ENGINE_UNAVAILABLE', infrastructure: true },
      },
    ],
  }),
  create(TrajectoryBatchSchema, {
    batchId: 2n ** 63n,
    redelivered: true,
    trajectories: [{ traces: [largeTrace(300_000)], reward: 1 }],
  }),
];

describe('contract: trajectory readers', function () {
  this.timeout(120_000);

  it('read the same from fixed batches, bit for bit, and acknowledge them', async () => {
    await using server = await trajectoryServer(() => BATCHES);
    const read = await compareReaders(server.url, 'contract', { batches: BATCHES.length });
    expect(read).to.deep.equal(BATCHES.map(readMessage));
    const hard = read[0]?.trajectories[0]?.traces[0];
    expect(hard?.response_ids).to.deep.equal(HARD_IDS);
    expect(hard?.logprobs).to.equal(HARD_FLOATS.map((bits) => bits.toString(16).padStart(8, '0')).join(''));
    const ids = BATCHES.map(({ batchId }) => batchId);
    for (const reader of ['python', 'aio', 'grpcjs', 'curl']) {
      expect(server.acked.get(`contract-${reader}`), reader).to.deep.equal(ids);
    }
  });

  it('are told apart by one bit of one logprob', async () => {
    const small = (bits: number): TrajectoryBatch =>
      create(TrajectoryBatchSchema, {
        batchId: 1n,
        trajectories: [
          {
            traces: [
              {
                responseIds: new Uint8Array(4),
                lossMask: Uint8Array.of(1),
                logprobs: bytesOf(Uint32Array.of(bits)),
              },
            ],
          },
        ],
      });
    for (const odd of ['python', 'aio', 'grpcjs', 'curl']) {
      await using server = await trajectoryServer((consumer) => [
        small(consumer === `bit-${odd}` ? 0x7fc00001 : 0x7fc00000),
      ]);
      const found = await compareReaders(server.url, 'bit', { batches: 1 }).catch(
        (error: Error) => error.message,
      );
      expect(found, odd).to.match(/against Python/);
    }
  });

  it('read the same from a reconstructor, which then has nothing left to send', async () => {
    await using nats = await startNats();
    await using mesh = await openMesh(nats.url);
    for (const [index, tokens] of [3, 1_000, 50_000].entries())
      await mesh.announceTrace(`t${index}`, tokens, 2);
    await using reconstructor = await startReconstructor(nats.url);
    const read = await compareReaders(reconstructor.url, 'real', { batches: 3 });
    expect(read.map(({ task_id }) => task_id)).to.deep.equal(['t0', 't1', 't2']);
    expect(read[2]?.trajectories[1]?.traces[0]?.response_ids.length).to.be.greaterThan(10_000);
    const { consumers } = await reconstructor.client.listConsumers({});
    expect(consumers.map(({ name }) => name)).to.have.members([
      'real-python',
      'real-aio',
      'real-grpcjs',
      'real-curl',
    ]);
    expect(consumers.map(({ pending }) => pending)).to.deep.equal([0n, 0n, 0n, 0n]);
  });
});

async function openMesh(url: string): Promise<Mesh & AsyncDisposable> {
  const mesh = await Mesh.open(url);
  return Object.assign(mesh, { [Symbol.asyncDispose]: () => mesh.close() });
}
