// The whole way on real input: the calculator task, the real pi CLI in a bubblewrap sandbox, tokens recorded by the
// proxy, traces rebuilt and graded, read by a Python trainer.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import {
  ExportKind,
  TrajectoryService,
} from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { readTaskFile } from '../../services/common/specs/task-file.ts';
import { polar } from '../support/cli.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { metricsOf } from '../support/metrics.ts';
import { compareReaders } from '../support/readers.ts';
import { waitForEnd } from '../support/tasks.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
const SCRIPT = join(ROOT, 'examples/calculator/script.yaml');

interface Span {
  readonly name: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { key: string; value: { intValue?: string } }[];
}

/** Of a line of OTLP JSON. */
function spansIn(line: string): (Span & { counts: Map<string, number> })[] {
  const { resourceSpans } = JSON.parse(line) as { resourceSpans: [{ scopeSpans: [{ spans: Span[] }] }] };
  return resourceSpans[0].scopeSpans[0].spans.map((span) => ({
    ...span,
    counts: new Map(span.attributes.map(({ key, value }) => [key, Number(value.intValue ?? 0)])),
  }));
}

async function lawsHold(mesh: Mesh, session: Session): Promise<string> {
  const client = createServiceClient(TrajectoryService, mesh.reconstructorUrl);
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-laws-'));
  try {
    for (const kind of [ExportKind.CALLS, ExportKind.TRACES]) {
      const lines: string[] = [];
      for await (const { line } of client.exportSession({ sessionId: session.sessionId, kind }))
        lines.push(line);
      writeFileSync(join(folder, `${kind}.jsonl`), `${lines.join('\n')}\n`);
    }
    const files = [ExportKind.CALLS, ExportKind.TRACES].map((kind) => join(folder, `${kind}.jsonl`));
    const { stdout } = await run('python3', [join(ROOT, 'test/vectors/laws.py'), ...files]);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** SGLang serves a mixture of experts. */
const EXPERTS = { layers: 3, top_k: 2, experts: 16 };
const EXPERT_FLAGS = ['--expert-layers', '3', '--expert-top-k', '2', '--experts', '16'];

interface Message {
  readonly role: string;
  readonly tool_calls?: readonly { readonly function: { readonly name: string } }[];
}

/** What of a row is looked at here. */
interface Row {
  readonly reward?: number;
  readonly messages?: readonly Message[];
  readonly prompt?: readonly Message[];
}

for (const engine of ['sglang', 'vllm'] as const) {
  describe(`the calculator task with pi and ${engine}`, function () {
    this.timeout(240_000);
    let mesh: Mesh;
    let sessions: Session[];
    before(async () => {
      mesh = await startMesh({
        engine,
        engineFlags: ['--script', SCRIPT, ...EXPERT_FLAGS],
        ...(engine === 'sglang' && { inference: { routed_experts: EXPERTS } }),
      });
      const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
      const spec = readTaskFile(join(ROOT, 'examples/calculator/task.yaml'));
      spec.taskId = `calculator-${engine}`;
      await rollout.submitTask({ spec });
      sessions = await waitForEnd(rollout, spec.taskId, 180_000);
    });
    after(() => mesh?.[Symbol.asyncDispose]());

    const exported = async (what: string, rule: readonly string[], at: readonly string[]): Promise<Row[]> => {
      const folder = join(mesh.folder, what);
      const args = ['-m', 'polar_mesh.export', folder, '--what', what, '--task', `calculator-${engine}`];
      const env = { ...process.env, PYTHONPATH: join(ROOT, 'clients/python/src') };
      await run(join(ROOT, '.venv/bin/python'), [...args, ...rule, ...at], { env });
      const lines = readFileSync(join(folder, 'part-00000.jsonl'), 'utf8').trim().split('\n');
      return lines.map((line) => JSON.parse(line) as Row);
    };

    it('ends every session with a graded trajectory; some solve the task and some do not', () => {
      for (const session of sessions) {
        expect(session.outcome, session.failure?.message).to.equal(Outcome.COMPLETED);
        expect(session.harness).to.equal('pi');
        expect(session.stats?.calls).to.be.greaterThan(2);
        expect(session.stats?.traces).to.be.greaterThan(0);
      }
      const rewards = sessions.map((session) => session.reward);
      expect(new Set(rewards)).to.deep.equal(new Set([0, 1]));
    });

    it('trains or masks every sampled token', () => {
      for (const { stats } of sessions) {
        const masked = Object.values(stats?.maskedTokens ?? {}).reduce((sum, count) => sum + count, 0n);
        expect(stats?.sampledTokens).to.equal((stats?.trainedTokens ?? 0n) + masked);
        expect(stats?.trainedTokens).to.not.equal(0n);
      }
    });

    it('shows at /metrics what came of them', async () => {
      const [scheduler, proxy, reconstructor, executor] = await Promise.all(
        [mesh.schedulerUrl, mesh.proxyUrl, mesh.reconstructorUrl, mesh.harnessUrl].map((url) =>
          metricsOf(url),
        ),
      );
      const sum = (of: (session: Session) => number | bigint | undefined): number =>
        sessions.reduce((total, session) => total + Number(of(session) ?? 0), 0);
      const ended = scheduler?.get('polar_scheduler_sessions_ended_total');
      expect(ended?.get('outcome="completed",reason=""')).to.equal(sessions.length);
      expect(scheduler?.get('polar_scheduler_reward_sum')?.get('')).to.equal(sum(({ reward }) => reward));
      expect(scheduler?.get('polar_scheduler_leading')?.get('')).to.equal(1);
      expect(executor?.get('polar_harness_executor_runs_started_total')?.get('harness="pi"')).to.equal(
        sessions.length,
      );
      const calls = [...(proxy?.get('polar_llm_proxy_calls_total')?.values() ?? [])];
      expect(calls.reduce((a, b) => a + b, 0)).to.equal(sum(({ stats }) => stats?.calls));
      const sampled = sum(({ stats }) => stats?.sampledTokens);
      expect(proxy?.get('polar_llm_proxy_tokens_total')?.get('kind="sampled"')).to.equal(sampled);
      const trained = sum(({ stats }) => stats?.trainedTokens);
      expect(reconstructor?.get('polar_reconstructor_trained_tokens_total')?.get('')).to.equal(trained);
    });

    it('exports calls and traces that obey the laws', async () => {
      for (const session of sessions) {
        expect(await lawsHold(mesh, session)).to.contain('all laws hold');
      }
    });

    it('passes an audit, and becomes SFT rows and preference pairs', async () => {
      const at = ['--rollout-url', mesh.schedulerUrl, '--trajectory-url', mesh.reconstructorUrl];
      const { code, stdout } = await polar(['audit', `calculator-${engine}`, ...at]);
      expect(stdout).to.contain('every sampled token is accounted for');
      expect(code).to.equal(0);
      const [row] = await exported('sft', ['--reward-min', '1'], at);
      expect(row?.reward).to.equal(1);
      const roles = row?.messages?.map(({ role }) => role);
      expect(roles?.slice(0, 3)).to.deep.equal(['system', 'user', 'assistant']);
      expect(row?.messages?.[2]?.tool_calls?.[0]?.function.name).to.be.a('string');
      const [pair] = await exported('preference', [], at);
      expect(pair).to.include({ chosen_reward: 1, rejected_reward: 0 });
      expect(pair?.prompt?.map(({ role }) => role).slice(0, 2)).to.deep.equal(['system', 'user']);
    });

    it('becomes spans, its calls within its runs', async () => {
      const at = ['--rollout-url', mesh.schedulerUrl, '--trajectory-url', mesh.reconstructorUrl];
      const { code, stdout } = await polar(['spans', `calculator-${engine}`, ...at]);
      expect(code).to.equal(0);
      const told = stdout.trim().split('\n').map(spansIn);
      expect(told).to.have.length(sessions.length);
      for (const [i, spans] of told.entries()) {
        const calls = spans.filter(({ name }) => name.startsWith('chat '));
        const sampled = calls.map(({ counts }) => counts.get('gen_ai.usage.output_tokens') ?? 0);
        expect(calls).to.have.length(sessions[i]?.stats?.calls ?? 0);
        expect(BigInt(sampled.reduce((a, b) => a + b, 0))).to.equal(sessions[i]?.stats?.sampledTokens);
        const run = spans.find(({ name }) => name === 'run');
        for (const { parentSpanId, startTimeUnixNano, endTimeUnixNano } of calls) {
          expect(parentSpanId).to.equal(run?.spanId);
          expect(endTimeUnixNano > startTimeUnixNano).to.equal(true);
        }
      }
    });

    it('reaches Python, grpc-js and curl as the same bytes', async () => {
      const [batch, ...others] = await compareReaders(mesh.reconstructorUrl, `readers-${engine}`, {
        batches: 1,
      });
      expect(others).to.have.length(0);
      expect(batch?.trajectories).to.have.length(sessions.length);
      for (const trace of batch?.trajectories.flatMap(({ traces }) => traces) ?? []) {
        const ids = trace.prompt_ids.length + trace.response_ids.length;
        const known = `${'01'.repeat(ids - 1)}00`;
        const shape = [EXPERTS.layers, EXPERTS.top_k, 1];
        if (engine === 'vllm') expect(trace.experts).to.equal(null);
        else expect([...trace.experts!.slice(0, 3), trace.experts![4]]).to.deep.equal([...shape, known]);
      }
    });
  });
}
