// Acknowledgements by gRPC, which pass beside Connect's library: the same answers, the same refusals, and both are counted.
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { expect } from 'chai';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { metricsOf } from '../support/metrics.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor, Trainer } from '../support/reconstructor.ts';

const METHOD = `${TrajectoryService.typeName}/AckTrajectories`;
const consumer = 'trainer';

describe('reconstructor: acknowledgements by gRPC', () => {
  let nats: TestNats;
  let mesh: Mesh;
  let reconstructor: TestReconstructor;
  before(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    reconstructor = await startReconstructor(nats.url);
  });
  after(async () => {
    await reconstructor[Symbol.asyncDispose]();
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });

  it('are answered, refused and counted as by Connect', async () => {
    const baseUrl = reconstructor.url;
    const options = { baseUrl, useBinaryFormat: true };
    const byGrpc = createClient(TrajectoryService, createGrpcTransport(options));
    const others = [
      createClient(TrajectoryService, createConnectTransport({ ...options, httpVersion: '2' })),
      createClient(
        TrajectoryService,
        createConnectTransport({ baseUrl, httpVersion: '1.1', useBinaryFormat: false }),
      ),
    ];
    const count = async (): Promise<number> => {
      const ended = (await metricsOf(baseUrl)).get('polar_rpc_ended_total');
      const own = [...(ended ?? [])].filter(([labels]) => labels.includes(METHOD));
      return own.reduce((sum, [, value]) => sum + value, 0);
    };
    for (let i = 0; i < 3; i++) await mesh.announceTrace(`t${i}`, 4);
    const trainer = new Trainer(reconstructor.client, consumer);
    const [first, second] = await trainer.batches(3);
    const before = await count();
    const told = async (client: typeof byGrpc, request: object): Promise<object> =>
      await client.ackTrajectories({ consumer, ...request }).then(
        ({ floor, policyVersion, seeks }) => ({ floor, policyVersion, seeks }),
        (error: unknown) => {
          const { code, message, details } = ConnectError.from(error);
          return { code: Code[code], message, details: details.length };
        },
      );
    const requests = [
      { batchIds: [second!.batchId] },
      { batchIds: [] },
      { batchIds: [first!.batchId], seeks: 1n },
      { batchIds: [first!.batchId] },
      { batchIds: [77n] },
      { batchIds: Array.from({ length: 1_001 }, () => 1n) },
      { consumer: 'nobody', batchIds: [] },
      { consumer: 'No Name', batchIds: [] },
    ];
    for (const request of requests) {
      const want = await told(byGrpc, request);
      for (const client of others) expect(await told(client, request)).to.deep.equal(want);
    }
    expect(await told(byGrpc, { batchIds: [] })).to.include({ floor: second!.batchId });
    expect(await told(byGrpc, { batchIds: [77n] })).to.include({ code: 'InvalidArgument', details: 2 });
    expect(await told(byGrpc, { consumer: 'nobody' })).to.include({ code: 'NotFound', details: 1 });
    expect((await count()) - before).to.be.at.least(requests.length * 3);
    trainer.close();
  });
});
