// Every RPC of every service with each field wrong in turn: an answer in time, never a broken service. The requests are made
// from the descriptors.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, type DescMethod, type DescService, type Message } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { expect } from 'chai';
import { parse } from 'yaml';
import { EvaluatorService } from '../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { ProxyService } from '../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { PolicyService } from '../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  LeaseOwnerSchema,
  RuntimeService,
} from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { fromConnectError, type PolarError } from '../../services/common/errors.ts';
import { ROOT } from '../support/cli.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';
import { type WrongRequest, wrongIn } from '../support/wrong-requests.ts';

const ANSWER_MS = 5_000;
const WAIT_MS = 60_000;
/** Whose fault it is not: of a caller's input, none of these may come. */
const OURS = [Code.Internal, Code.Unknown, Code.DataLoss, Code.Unavailable, Code.DeadlineExceeded];
/** Checked as at submit, where they have tests of their own. */
const SPECS = new Set(['polar.common.v1.TaskSpec', 'polar.common.v1.EvaluatorSpec']);

const TRANSPORTS: Readonly<Record<string, (baseUrl: string) => Transport>> = {
  gRPC: (baseUrl) => createGrpcTransport({ baseUrl }),
  'gRPC-Web': (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' }),
  Connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '1.1' }),
};

type Answer = ConnectError | undefined;
type Client = Record<string, (request: Message, options: { signal: AbortSignal }) => unknown>;

/** What came of a call; undefined where it was taken. A stream is read up to its first message. */
async function answerTo(client: Client, method: DescMethod, request: Message): Promise<Answer> {
  try {
    const options = { signal: AbortSignal.timeout(ANSWER_MS) };
    const answer = client[method.localName]?.(request, options);
    if (method.methodKind === 'unary') await answer;
    else for await (const _ of answer as AsyncIterable<unknown>) break;
    return undefined;
  } catch (error) {
    return ConnectError.from(error);
  }
}

/** What is wrong with an answer. */
function faultOf(method: DescMethod, { what }: WrongRequest, error: Answer): string | undefined {
  if (error === undefined) {
    return /^(unknown|NaN|infinite|endless|nanos out of range)$/.test(what) ? 'was taken' : undefined;
  }
  const { reason, fields } = fromConnectError(error);
  if (error.code === Code.Canceled) return `no answer within ${ANSWER_MS} ms`;
  if (OURS.includes(error.code)) return `${Code[error.code]} ${reason}: ${error.message}`;
  const names = [...method.input.fields.map(({ name }) => name), 'path', 'the request is too large'];
  const named = fields.length > 0 || names.some((name) => error.message.includes(name));
  return named || error.code !== Code.InvalidArgument ? undefined : `names no field: ${error.message}`;
}

describe('bad input', function () {
  this.timeout(3 * WAIT_MS);
  let mesh: Mesh;
  let services: (readonly [DescService, string])[];
  let good: Readonly<Record<string, unknown>>;
  before(async () => {
    mesh = await startMesh();
    const [node] = parse(readFileSync(mesh.topologyFile, 'utf8')).gateway.nodes;
    const runtimeUrl = `http://127.0.0.1:${node.runtime_prewarm_port}`;
    const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    const { sessionIds } = await rollout.submitTask({ spec: curlTask('good', 1, 1) });
    await waitForEnd(rollout, 'good', WAIT_MS);
    const runtimes = createServiceClient(RuntimeService, runtimeUrl);
    const ttl = create(DurationSchema, { seconds: 60n });
    const owner = create(LeaseOwnerSchema, { sessionId: 'bad-input', attempt: 1, purpose: 'run' });
    const { runtime } = await runtimes.acquireRuntime({ spec: { backend: 'bubblewrap' }, owner, ttl });
    good = {
      ...{ taskId: 'good', sessionId: sessionIds[0], consumer: 'trainer', nodeId: 'node-1', maxBatches: 1 },
      ...{ runtimeId: runtime?.runtimeId, owner, ttl, argv: ['true'], policyVersion: 1n, timeout: ttl },
    };
    services = [
      [RolloutService, mesh.schedulerUrl],
      [TrajectoryService, mesh.reconstructorUrl],
      [ProxyService, mesh.proxyUrl],
      [PolicyService, mesh.proxyUrl],
      [HarnessService, mesh.harnessUrl],
      [EvaluatorService, `http://127.0.0.1:${node.evaluator_port}`],
      [RuntimeService, runtimeUrl],
    ];
  });
  after(() => mesh[Symbol.asyncDispose]());

  it('is asked of all services that there are', () => {
    const declared = globSync(join(ROOT, 'proto/polar/**/*.proto')).flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/^service (\w+)/gm)].map(([, name]) => name),
    );
    expect(services.map(([{ name }]) => name).sort()).to.deep.equal(declared.sort());
  });

  for (const [name, transport] of Object.entries(TRANSPORTS)) {
    it(`is answered in time, by its fault, over ${name}`, async () => {
      const found: string[] = [];
      for (const [service, url] of services) {
        const client = createClient(service, transport(url)) as unknown as Client;
        for (const method of service.methods) {
          for (const wrong of wrongIn(method.input, good, SPECS)) {
            const fault = faultOf(method, wrong, await answerTo(client, method, wrong.request));
            if (fault !== undefined) found.push(`${method.name} ${wrong.field} ${wrong.what}: ${fault}`);
          }
        }
      }
      expect(found.join('\n')).to.equal('');
    });
  }

  it('is named by each field of a sandbox that is asked for, as at submit', async () => {
    const [, url = ''] = services.find(([{ name }]) => name === RuntimeService.name) ?? [];
    const prepare = [{ step: { case: 'exec', value: { command: 'a\0b' } } } as const];
    const spec = { backend: 'bubblewrap', workdir: 'here', env: { '1': '' }, prepare };
    const asked = createServiceClient(RuntimeService, url).acquireRuntime({ ...good, spec });
    const { reason, fields } = await asked.then(
      () => expect.fail('was made'),
      (error: PolarError) => error,
    );
    expect(reason).to.equal('INVALID_REQUEST');
    expect(fields.map(({ field }) => field)).to.deep.equal([
      'spec.workdir',
      'spec.env.1',
      'spec.prepare[0].exec.command',
    ]);
  });

  it('is no message, where one is read without Connect', async () => {
    const answer = await fetch(`${mesh.reconstructorUrl}/${TrajectoryService.typeName}/StreamTrajectories`, {
      method: 'POST',
      headers: { 'content-type': 'application/connect+proto', 'connect-protocol-version': '1' },
      // A field of two bytes, of which one is there.
      body: new Uint8Array([0, 0, 0, 0, 3, 0x0a, 2, 0x61]),
    });
    expect(await answer.text())
      .to.contain('invalid_argument')
      .and.contain('the request cannot be read');
  });

  it('has left all services as they were', async () => {
    const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    expect((await rollout.listTasks({})).tasks.map(({ taskId }) => taskId)).to.deep.equal(['good']);
    await createServiceClient(PolicyService, mesh.proxyUrl).resume({});
    await rollout.drainNode({ nodeId: 'node-1', undo: true });
    await rollout.submitTask({ spec: curlTask('after', 1, 1) });
    const [session] = await waitForEnd(rollout, 'after', WAIT_MS);
    expect(session?.attempt).to.equal(1);
    expect(session?.failure?.message ?? '').to.equal('');
  });
});
