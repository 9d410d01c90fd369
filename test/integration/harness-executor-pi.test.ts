// The real pi CLI in a sandbox, against a scripted endpoint.
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RunWorkSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { execCollected } from '../../services/common/exec.ts';
import { newRef, startNode, type TestNode } from '../support/node.ts';
import { type ChatRequest, startStandInProxy } from '../support/stand-in-proxy.ts';

const INSTRUCTION = '@create -hello\nwith "quotes" and $HOME';

/** First a tool call, then an answer. */
function script({ messages }: ChatRequest): object {
  if (messages.at(-1)?.role === 'tool') return { content: 'All done.' };
  const args = JSON.stringify({ command: 'echo hi > hello.txt' });
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'bash', arguments: args } };
  return { tool_calls: [call] };
}

describe('pi in a sandbox', function () {
  this.timeout(180_000);
  let node: TestNode;
  before(async () => {
    node = await startNode(['runtime-prewarm', 'harness-executor']);
  });
  after(() => node[Symbol.asyncDispose]());
  const harnesses = () =>
    createServiceClient(HarnessService, `http://127.0.0.1:${node.ports['harness-executor']}`);

  for (const backend of ['the default', 'process'] as const) {
    it(`works on an instruction through the proxy, in ${backend} runtime`, async () => {
      await using proxy = await startStandInProxy({
        node,
        reply: script,
      });
      const ref = newRef();
      const runtimeId = await node.acquire(ref, backend === 'process' ? { backend } : {});
      const harness = { name: 'pi', modelName: 'org/model:7b' };
      const value = create(RunWorkSchema, {
        runtimeId,
        instruction: INSTRUCTION,
        timeoutMs: 60_000n,
        harness,
      });
      await node.work(ref, { case: 'run', value });
      const { kind } = await node.fact(ref);
      const problem = kind.case === 'failed' ? kind.value.failure?.message : node.log('harness-executor');
      expect(kind.case === 'ran' && kind.value.outcome, problem).to.equal(Outcome.COMPLETED);
      expect(proxy.calls.map(({ capability }) => capability?.ref?.sessionId)).to.deep.equal([
        ref.sessionId,
        ref.sessionId,
      ]);
      const [{ body } = { body: undefined }] = proxy.calls;
      expect(body?.model).to.equal('org/model:7b');
      expect(JSON.stringify(body?.messages)).to.contain(JSON.stringify(INSTRUCTION).slice(1, -1));
      const look = { runtimeId, argv: ['sh', '-c', 'cat hello.txt; ls -A'], timeoutMs: 10_000 };
      const { stdout } = await execCollected(node.runtimes, look, AbortSignal.timeout(20_000));
      expect(Buffer.from(stdout).toString()).to.equal('hi\nhello.txt\n');
      const { artifacts } = await harnesses().listSessionArtifacts({ sessionId: ref.sessionId });
      expect(artifacts).to.have.length(1);
      expect(artifacts[0]).to.include({ transcript: true });
      const path = artifacts[0]?.path ?? '';
      const transcript = await harnesses().getSessionArtifact({ sessionId: ref.sessionId, path });
      expect(Buffer.from(transcript.content).toString()).to.contain('All done.');
    });
  }
});
