// Callers without protos: what a port serves, as real clients ask for it.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { expect } from 'chai';
import { ServerReflection } from '../../gen/ts/grpc/reflection/v1/reflection_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { STOP_GRACE_MS } from '../../services/common/limits.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';

const run = promisify(execFile);

describe('reflection', () => {
  let server: RunningServer;
  let url: string;
  beforeEach(async () => {
    server = await startServer({
      host: '127.0.0.1',
      port: 0,
      services: [TrajectoryService.typeName],
      routes: (router) =>
        router.service(TrajectoryService, { listConsumers: () => ({ consumers: [{ name: 'trainer' }] }) }),
    });
    url = `http://127.0.0.1:${server.port}`;
  });
  afterEach(() => server.close());

  const ask = async (...args: string[]): Promise<string> =>
    (await run('buf', ['curl', '--protocol', 'grpc', '--http2-prior-knowledge', ...args])).stdout;

  for (const version of ['grpc-v1', 'grpc-v1alpha']) {
    it(`lists methods, and has them called with JSON, by ${version}`, async function () {
      this.timeout(20_000);
      const protocol = ['--reflect-protocol', version];
      const methods = (await ask(...protocol, '--list-methods', url)).trim().split('\n');
      expect(methods).to.include.members([
        `${TrajectoryService.typeName}/ListConsumers`,
        'grpc.health.v1.Health/Check',
        'grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      ]);
      const answer = await ask(...protocol, '-d', '{}', `${url}/${TrajectoryService.typeName}/ListConsumers`);
      expect(JSON.parse(answer)).to.eql({ consumers: [{ name: 'trainer' }] });
    });
  }

  it('has the files of types, fields and methods, each with what it imports, and says what there is not', async () => {
    const client = createClient(ServerReflection, createGrpcTransport({ baseUrl: url }));
    const own = 'polar/reconstructor/v1/reconstructor_service.proto';
    async function* questions() {
      for (const value of [
        TrajectoryService.typeName,
        `${TrajectoryService.typeName}.ListConsumers`,
        'polar.reconstructor.v1.ListConsumersResponse.consumers',
      ]) {
        yield { messageRequest: { case: 'fileContainingSymbol' as const, value } };
      }
      yield { messageRequest: { case: 'fileByFilename' as const, value: own } };
      for (const value of ['polar.nothing', `${TrajectoryService.typeName}.Nothing`]) {
        yield { messageRequest: { case: 'fileContainingSymbol' as const, value } };
      }
      yield { host: 'mesh' };
    }
    const found: unknown[] = [];
    for await (const { messageResponse, originalRequest, validHost } of client.serverReflectionInfo(
      questions(),
    )) {
      if (messageResponse.case === 'errorResponse') {
        found.push([messageResponse.value.errorCode, validHost]);
        continue;
      }
      expect(messageResponse.case, `${originalRequest?.messageRequest.value}`).to.equal(
        'fileDescriptorResponse',
      );
      const { fileDescriptorProto } = messageResponse.value as { fileDescriptorProto: Uint8Array[] };
      const files = fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
      const names = new Set(files.map(({ name }) => name));
      expect(files.flatMap(({ dependency }) => dependency).filter((name) => !names.has(name))).to.eql([]);
      found.push(files[0]?.name);
    }
    expect(found).to.eql([
      ...[own, own, own, own],
      ...[
        [Code.NotFound, ''],
        [Code.NotFound, ''],
      ],
      [Code.InvalidArgument, 'mesh'],
    ]);
  });

  it('holds up no stop', async () => {
    const client = createClient(ServerReflection, createGrpcTransport({ baseUrl: url }));
    const { promise: never, resolve } = Promise.withResolvers<void>();
    async function* questions() {
      yield { messageRequest: { case: 'listServices' as const, value: '' } };
      await never;
    }
    const answers = client.serverReflectionInfo(questions())[Symbol.asyncIterator]();
    await answers.next();
    const ended = answers.next().then(
      () => undefined,
      ({ code }) => code as Code,
    );
    const began = performance.now();
    // As clients do that have got their answer.
    void ended.then(() => resolve());
    await server.close();
    expect(performance.now() - began).to.be.below(STOP_GRACE_MS / 2);
    expect(await ended).to.equal(Code.Unavailable);
  });
});
