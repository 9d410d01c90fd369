// The same batches through readers that share no code: the Python client (with threads and with asyncio), @grpc/grpc-js,
// curl with Connect JSON.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { curlBatches } from './curl-reader.ts';
import { grpcJsClient } from './grpc-js.ts';
import { type ReadBatch, readMessage } from './read-batch.ts';

const root = join(import.meta.dirname, '..', '..');
const python = join(root, '.venv', 'bin', 'python');
const run = promisify(execFile);

export interface ReadOptions {
  /** Batches to read; there must be as many. */
  readonly batches: number;
  /** Only batches of this task. */
  readonly taskId?: string;
}

interface Reading extends Required<ReadOptions> {
  readonly url: string;
  readonly consumer: string;
}

/**
 * Reads and acknowledges the first batches of the TrajectoryService at `url` with each reader, as the consumers
 * `<consumerPrefix>-python`, `-aio`, `-grpcjs` and `-curl`; throws unless all of them saw the same, ids, masks and logprobs bit
 * for bit. Answers with what they saw.
 */
export async function compareReaders(
  url: string,
  consumerPrefix: string,
  options: ReadOptions,
): Promise<ReadBatch[]> {
  const reading = (name: string): Reading => ({
    taskId: '',
    ...options,
    url,
    consumer: `${consumerPrefix}-${name}`,
  });
  const [fromPython, fromAio, fromGrpcJs, fromCurl] = await Promise.all([
    readWithPython(reading('python')),
    readWithPython(reading('aio'), 'aio'),
    readWithGrpcJs(reading('grpcjs')),
    readWithCurl(reading('curl')),
  ]);
  expect(fromPython, 'batches').to.have.length(options.batches);
  expect(fromAio, 'asyncio against Python').to.deep.equal(fromPython);
  expect(fromGrpcJs, '@grpc/grpc-js against Python').to.deep.equal(fromPython);
  expect(fromCurl, 'curl against Python').to.deep.equal(fromPython);
  return fromPython;
}

async function readWithPython(
  { url, consumer, batches, taskId }: Reading,
  kind: 'threads' | 'aio' = 'threads',
): Promise<ReadBatch[]> {
  const script = join(import.meta.dirname, 'python-reader.py');
  const { stdout } = await run(python, [script, kind, url, consumer, String(batches), taskId], {
    env: { ...process.env, PYTHONPATH: join(root, 'clients', 'python', 'src') },
    maxBuffer: 1024 ** 3,
    timeout: 90_000,
  });
  return JSON.parse(stdout) as ReadBatch[];
}

export async function readWithGrpcJs({ url, consumer, batches, taskId }: Reading): Promise<ReadBatch[]> {
  using client = grpcJsClient(TrajectoryService, url);
  const stream = client.streamTrajectories({ consumer, taskId });
  const read: ReadBatch[] = [];
  const batchIds: bigint[] = [];
  for await (const { batch } of stream as AsyncIterable<{ batch?: Parameters<typeof readMessage>[0] }>) {
    if (batch === undefined) continue;
    read.push(readMessage(batch));
    batchIds.push(batch.batchId);
    if (read.length === batches) break;
  }
  await client.ackTrajectories({ consumer, batchIds });
  return read;
}

async function readWithCurl({ url, consumer, batches, taskId }: Reading): Promise<ReadBatch[]> {
  const read = await curlBatches(url, { consumer, taskId }, batches);
  const ack = JSON.stringify({ consumer, batchIds: read.map((batch) => batch.batch_id) });
  const path = `${url}/polar.reconstructor.v1.TrajectoryService/AckTrajectories`;
  const { stdout } = await run('curl', ['-sSf', '-H', 'content-type: application/json', '-d', ack, path]);
  JSON.parse(stdout);
  return read;
}
