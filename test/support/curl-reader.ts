// Batches by curl: the Connect protocol's JSON over HTTP/1.1, with no client library and no generated code.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  doubleBits,
  floatBits,
  ints,
  type ReadBatch,
  type ReadTrace,
  type ReadTrajectory,
} from './read-batch.ts';

interface JsonTrace {
  readonly promptIds?: string;
  readonly responseIds?: string;
  readonly lossMask?: string;
  readonly logprobs?: string;
  readonly spans?: readonly {
    readonly callId?: string;
    readonly start?: number;
    readonly length?: number;
    readonly finishReason?: string;
    readonly policyVersion?: string;
  }[];
  readonly routedExperts?: {
    readonly layers?: number;
    readonly topK?: number;
    readonly itemBytes?: number;
    readonly rows?: string;
    readonly known?: string;
  };
}

interface JsonTrajectory {
  readonly sessionId?: string;
  readonly sampleIndex?: number;
  readonly attempt?: number;
  readonly outcome?: string;
  readonly failure?: { readonly reason?: string };
  readonly reward?: number | 'NaN' | 'Infinity' | '-Infinity';
  readonly policyVersionMin?: string;
  readonly policyVersionMax?: string;
  readonly traces?: readonly JsonTrace[];
}

interface JsonBatch {
  readonly batchId?: string;
  readonly taskId?: string;
  readonly groupId?: string;
  readonly redelivered?: boolean;
  readonly trajectories?: readonly JsonTrajectory[];
}

/** A frame's flag for the last one of a stream; it holds the error, if any. */
const END_OF_STREAM = 0b10;

/** Reads `count` batches from the TrajectoryService at `url`, then ends curl. */
export async function curlBatches(url: string, request: object, count: number): Promise<ReadBatch[]> {
  const path = `${url}/polar.reconstructor.v1.TrajectoryService/StreamTrajectories`;
  const headers = ['-H', 'content-type: application/connect+json', '-H', 'connect-protocol-version: 1'];
  const curl = spawn('curl', ['-sSN', '--http1.1', ...headers, '--data-binary', '@-', path], {
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 90_000,
  });
  const exited = once(curl, 'exit');
  curl.stdin.end(frame(request));
  const batches: ReadBatch[] = [];
  try {
    for await (const { flags, body } of frames(curl.stdout)) {
      if ((flags & END_OF_STREAM) !== 0) throw new Error(`the stream ended: ${body}`);
      const { batch } = JSON.parse(body) as { batch?: JsonBatch };
      if (batch === undefined) continue;
      batches.push(readJson(batch));
      if (batches.length === count) break;
    }
  } finally {
    curl.kill();
    await exited;
  }
  return batches;
}

/** Flags (one byte), length (four, big-endian), body. */
function frame(message: object): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

async function* frames(chunks: AsyncIterable<Buffer>): AsyncGenerator<{ flags: number; body: string }> {
  let seen: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    seen = Buffer.concat([seen, chunk]);
    while (seen.length >= 5 && seen.length >= 5 + seen.readUInt32BE(1)) {
      const end = 5 + seen.readUInt32BE(1);
      yield { flags: seen.readUInt8(0), body: seen.toString('utf8', 5, end) };
      seen = seen.subarray(end);
    }
  }
}

function readJson(batch: JsonBatch): ReadBatch {
  return {
    batch_id: batch.batchId ?? '0',
    task_id: batch.taskId ?? '',
    group_id: batch.groupId ?? '',
    redelivered: batch.redelivered ?? false,
    trajectories: (batch.trajectories ?? []).map(readTrajectory),
  };
}

function readTrajectory(one: JsonTrajectory): ReadTrajectory {
  return {
    session_id: one.sessionId ?? '',
    sample_index: one.sampleIndex ?? 0,
    attempt: one.attempt ?? 0,
    outcome: (one.outcome ?? 'OUTCOME_UNSPECIFIED').replace(/^OUTCOME_/, '').toLowerCase(),
    failure: one.failure === undefined ? null : (one.failure.reason ?? ''),
    reward: one.reward === undefined ? null : doubleBits(Number(one.reward)),
    policy_versions: [one.policyVersionMin ?? '0', one.policyVersionMax ?? '0'],
    traces: (one.traces ?? []).map(readTrace),
  };
}

function readExperts(one: NonNullable<JsonTrace['routedExperts']>): ReadTrace['experts'] {
  const hex = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString('hex');
  return [one.layers ?? 0, one.topK ?? 0, one.itemBytes ?? 0, hex(one.rows), hex(one.known)];
}

function readTrace(one: JsonTrace): ReadTrace {
  const column = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64');
  return {
    prompt_ids: ints(column(one.promptIds)),
    response_ids: ints(column(one.responseIds)),
    loss_mask: [...column(one.lossMask)],
    logprobs: floatBits(column(one.logprobs)),
    spans: (one.spans ?? []).map((span) => [
      span.callId ?? '',
      span.start ?? 0,
      span.length ?? 0,
      span.finishReason ?? '',
      span.policyVersion ?? '0',
    ]),
    experts: one.routedExperts === undefined ? null : readExperts(one.routedExperts),
  };
}
