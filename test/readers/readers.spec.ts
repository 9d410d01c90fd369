// The readers in Go and Rust, built and run against a real reconstructor: `npm run test:readers`.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { BlobRefSchema } from '../../gen/ts/polar/common/v1/blob_pb.js';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { SessionResultSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { TrajectorySchema } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { startServer } from '../../services/common/server.ts';
import { CertificateStore } from '../../services/common/tls/certificates.ts';
import { Authority } from '../support/certificates.ts';
import { startNats } from '../support/nats.ts';
import type { ReadBatch } from '../support/read-batch.ts';
import { readWithGrpcJs } from '../support/readers.ts';
import { Mesh, startReconstructor } from '../support/reconstructor.ts';
import { isInstalled, READERS, readWith } from './programs.ts';

const BUILD_MS = 600_000;
const SOURCE_LINES_MAX = 100;
const GROUPS = [
  { taskId: 't0', ids: 3, sessions: 1 },
  { taskId: 't1', ids: 1_000, sessions: 3 },
  { taskId: 't2', ids: 50_000, sessions: 2 },
];

for (const { language, tool, source, build } of READERS) {
  const why = isInstalled(tool) ? '' : ` (left out: there is no ${tool} on PATH)`;
  describe(`reader in ${language}${why}`, function () {
    this.timeout(BUILD_MS);
    let program: string;
    before(async function () {
      if (why !== '') this.skip();
      program = await build();
    });

    it(`is one file of fewer than ${SOURCE_LINES_MAX} lines`, () => {
      const text = readFileSync(join(import.meta.dirname, '../..', source), 'utf8');
      expect(text.split('\n').length).to.be.lessThan(SOURCE_LINES_MAX);
    });

    it('reads and acknowledges what another client reads, and goes on from there', async () => {
      await using nats = await startNats();
      const mesh = await Mesh.open(nats.url);
      try {
        for (const { taskId, ids, sessions } of GROUPS) await mesh.announceTrace(taskId, ids, sessions);
        await announceUneven(mesh);
        await using reconstructor = await startReconstructor(nats.url);
        const { url } = reconstructor;
        const read = await readWithGrpcJs({ url, consumer: 'other', batches: GROUPS.length + 1, taskId: '' });
        const expected = read.map(told);
        expect(await readWith(program, [url, 'mine', '2'])).to.deep.equal(expected.slice(0, 2));
        // The third and the fourth were sent to the first run as well, which ended before it took them.
        const again = expected.slice(2).map((line) => line.replace('redelivered false', 'redelivered true'));
        expect(await readWith(program, [url, 'mine', '2'])).to.deep.equal(again);
        expect(await readWith(program, [url, 'columns', '4', 'columns'])).to.deep.equal(expected);
        const { consumers } = await reconstructor.client.listConsumers({});
        expect(consumers.map(({ pending }) => pending)).to.deep.equal([0n, 0n, 0n]);
      } finally {
        await mesh.close();
      }
    });

    it('sends the access token that it is given', async () => {
      const seen: (string | null)[] = [];
      const server = await startServer({
        host: '127.0.0.1',
        port: 0,
        services: [TrajectoryService.typeName],
        routes: (router) => {
          router.service(TrajectoryService, {
            async *streamTrajectories(_, { requestHeader }) {
              seen.push(requestHeader.get('authorization'));
              yield { batch: { batchId: 1n } };
            },
            ackTrajectories(_, { requestHeader }) {
              seen.push(requestHeader.get('authorization'));
              return {};
            },
          });
        },
      });
      try {
        await readWith(program, [`http://127.0.0.1:${server.port}`, 'mine', '1'], { POLAR_TOKEN: 'secret' });
      } finally {
        await server.close();
      }
      expect(seen).to.deep.equal(['Bearer secret', 'Bearer secret']);
    });

    it('speaks TLS, and shows a certificate of its own', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'polar-test-readers-'));
      const ours = new Authority(folder, 'ours');
      const mesh = ours.sign('mesh', ['IP:127.0.0.1']);
      const trainer = ours.sign('trainer', ['DNS:trainer']);
      const files = { cert_file: mesh.cert, key_file: mesh.key, client_ca_file: ours.file };
      const server = await startServer({
        ...{ host: '127.0.0.1', port: 0, services: [TrajectoryService.typeName] },
        tls: new CertificateStore(files, (key) => key),
        routes: (router) =>
          router.service(TrajectoryService, {
            async *streamTrajectories() {
              yield { batch: { batchId: 7n } };
            },
            ackTrajectories: () => ({}),
          }),
      });
      const args = [`https://127.0.0.1:${server.port}`, 'mine', '1'];
      const known = { POLAR_CA_FILE: ours.file };
      const shown = { ...known, POLAR_CERT_FILE: trainer.cert, POLAR_KEY_FILE: trainer.key };
      const refused = (more: Record<string, string>) =>
        readWith(program, args, more).then(
          () => expect.fail('it was let in'),
          (error: { readonly code: number }) => error.code,
        );
      try {
        expect((await readWith(program, args, shown))[0]).to.match(/^batch 7: /);
        expect(await refused(known)).to.equal(1);
        expect(await refused({})).to.equal(1);
      } finally {
        await server.close();
        rmSync(folder, { recursive: true });
      }
    });

    it('asks for the other where a certificate or its key is named alone', async () => {
      const names = ['POLAR_CERT_FILE', 'POLAR_KEY_FILE'];
      for (const [i, name] of names.entries()) {
        const named = { [name]: import.meta.filename };
        const failed = await readWith(program, ['https://127.0.0.1:9', 'mine', '1'], named).catch(
          (error: { readonly stderr: string }) => error,
        );
        expect(failed)
          .to.have.property('stderr')
          .that.contains(`${names[1 - i]} is not`);
      }
    });

    it('ends with what is wrong where nobody listens', async () => {
      const failed = await readWith(program, ['http://127.0.0.1:9', 'mine', '1']).catch(
        (error: { readonly code: number; readonly stderr: string }) => error,
      );
      expect(failed).to.have.property('code', 1);
      expect(failed)
        .to.have.property('stderr')
        .that.match(/refused|connect/i);
    });
  });
}

/** A session of traces whose prompts and responses are of different lengths, some of them empty. */
async function announceUneven(mesh: Mesh): Promise<void> {
  const traces = [
    [3, 2],
    [0, 4],
    [5, 0],
  ].map(([prompt = 0, response = 0]) => ({
    promptIds: new Uint8Array(4 * prompt),
    responseIds: new Uint8Array(4 * response),
    lossMask: Uint8Array.from({ length: response }, (_, i) => i % 2),
    logprobs: new Uint8Array(4 * response),
  }));
  const made = create(TrajectorySchema, { sessionId: 'uneven', traces });
  const trajectory = create(BlobRefSchema, await mesh.blobs.put(toBinary(TrajectorySchema, made)));
  const session = { sessionId: 'uneven', attempt: 1, outcome: Outcome.COMPLETED, trajectory };
  await mesh.announce({ taskId: 'uneven', sessions: [create(SessionResultSchema, session)] });
}

/** The line that a reader prints of a batch. */
function told({ batch_id, task_id, group_id, trajectories, redelivered }: ReadBatch): string {
  const traces = trajectories.flatMap((one) => one.traces);
  const ids = traces.reduce((sum, one) => sum + one.prompt_ids.length + one.response_ids.length, 0);
  const trained = traces.reduce((sum, one) => sum + one.loss_mask.reduce((all, mask) => all + mask, 0), 0);
  return (
    `batch ${batch_id}: task ${task_id}, group ${group_id}, ${trajectories.length} sessions, ` +
    `${traces.length} traces, ${ids} ids, ${trained} trained, redelivered ${redelivered}`
  );
}
