// Routed experts: what the engine told of each id is in the records once, and in every trace at that id's place.
import { expect } from 'chai';
import { type ExpertModel, routedExperts } from '../../examples/scripted-engine/reply/experts.ts';
import type { SomeSwitches } from '../../examples/scripted-engine/switches.ts';
import { BASH, startTestEngine } from '../../examples/scripted-engine/testing.ts';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import type { Trace } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { unpackIds } from '../../services/common/columns.ts';
import type { BuilderName } from '../../services/common/specs/catalogue.ts';
import { type Build, build } from '../../services/reconstructor/domain/build.ts';
import { expand, inOrder } from '../../services/reconstructor/domain/expand.ts';
import { AgentSession } from '../support/agent-session.ts';
import { TestProxy } from '../support/llm-proxy.ts';

const SCRIPT = `
when: count
variants:
  - name: counts
    steps:
      - { think: There may be many., text: I look at the unbelievably long listing., calls: [{ shell: ls -la }] }
      - { text: Now the others., calls: [{ shell: ls }, { shell: cat second.txt }] }
      - { text: And the last ones., calls: [{ shell: cat third.txt }] }
      - { text: There are many of them. }
`;
const TURNS = 4;
const MODEL: ExpertModel = { layers: 3, topK: 2, experts: 8 };

const switchesOf = ({ layers, topK, experts }: ExpertModel): SomeSwitches => ({
  expert_layers: layers,
  expert_top_k: topK,
  experts,
});

interface Stage {
  readonly engine?: 'sglang' | 'vllm';
  /** What the engine plays, and what the topology says of it. */
  readonly plays?: ExpertModel;
  readonly says?: ExpertModel;
  readonly mode?: 'text' | 'token';
  readonly switches?: SomeSwitches;
}

async function staged({
  engine: kind = 'sglang',
  plays = MODEL,
  says = plays,
  mode = 'text',
  switches,
}: Stage) {
  const engine = await startTestEngine({
    dialect: kind,
    script: SCRIPT,
    switches: { ...switchesOf(plays), ...switches },
  });
  const routed_experts = { layers: says.layers, top_k: says.topK, experts: says.experts };
  const inference = { mode, routed_experts };
  const proxy = await TestProxy.prepare({ engineUrl: engine.url, kind, inference });
  await proxy.startHere();
  return {
    proxy,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    },
  };
}

const agentOf = async (proxy: TestProxy, stream: boolean): Promise<AgentSession> =>
  new AgentSession(proxy, await proxy.admit('s'), 'count the files', { stream, tools: [BASH] });

const builtOf = (records: readonly Completion[], builder: BuilderName = 'prefix_merging'): Build =>
  build(builder, expand(inOrder(records, records.length)));

const idsOf = (trace: Trace): number[] => [...unpackIds(trace.promptIds), ...unpackIds(trace.responseIds)];

/** The rows that the model has for these ids; none for the last one. */
const rowsFor = (ids: readonly number[], model: ExpertModel): number[] => [
  ...unpackIds(Buffer.from(routedExperts([...ids, 0], 0, model), 'base64')),
];

/** Every id of every trace but the last has the row that the model gives it there. */
function expectExperts(built: Build, model = MODEL): void {
  expect(built.traces).to.not.have.length(0);
  for (const trace of built.traces) {
    const ids = idsOf(trace);
    const { rows, known, layers, topK, itemBytes } = trace.routedExperts!;
    expect({ layers, topK }).to.deep.equal({ layers: model.layers, topK: model.topK });
    const column = itemBytes === 1 ? rows : new Uint16Array(rows.slice().buffer);
    const last = ids.length - 1;
    expect([...known]).to.deep.equal([...Array(last).fill(1), 0]);
    const width = layers * topK;
    expect([...column.subarray(0, last * width)]).to.deep.equal(rowsFor(ids, model).slice(0, last * width));
    expect([...column.subarray(last * width)]).to.deep.equal(Array(width).fill(0));
  }
  expect(built.stats.expertsDropped).to.deep.equal({});
}

describe('routed experts', () => {
  const WAYS = (['sglang', 'vllm'] as const).flatMap((engine) =>
    (['text', 'token'] as const).map((mode) => ({ engine, mode })),
  );
  for (const { engine, mode } of WAYS) {
    for (const stream of [false, true]) {
      const how = `${engine}, ${mode} mode, ${stream ? 'streamed' : 'whole'}`;
      it(`are recorded once and are in all traces: ${how}`, async () => {
        // In text mode the history drifts, so that the session falls into several traces.
        await using stage = await staged({ engine, mode, switches: { split_samples: true } });
        const agent = await agentOf(stage.proxy, stream);
        await agent.work(2);
        const forked = agent.fork();
        forked.messages.at(-1)!.content += ' otherwise';
        await agent.work(TURNS);
        await forked.work(TURNS);
        const records = await stage.proxy.records('s');
        expect(builtOf(records).traces).to.have.length.above(1);
        expectExperts(builtOf(records));
        expectExperts(builtOf(records, 'per_request'));
        for (const { routedExperts: rows, promptLength, sampledIds } of records.slice(1)) {
          expect(rows?.first).to.be.above(0);
          const told = promptLength + sampledIds.length / 4 - 1 - rows!.first;
          expect(rows?.rows).to.have.length(told * MODEL.layers * MODEL.topK);
        }
      });
    }
  }

  for (const engine of ['sglang', 'vllm'] as const) {
    it(`go on after the proxy was started again, with two bytes where there are many: ${engine}`, async () => {
      const model = { layers: 2, topK: 3, experts: 300 };
      await using stage = await staged({ engine, plays: model, mode: 'token' });
      const agent = await agentOf(stage.proxy, false);
      await agent.work(2);
      await stage.proxy.stopHere();
      await stage.proxy.startHere();
      await agent.work(TURNS);
      const records = await stage.proxy.records('s');
      expect(records.at(-1)?.routedExperts?.first).to.be.above(0);
      expectExperts(builtOf(records), model);
    });
  }

  it('come with each of several replies, also where the stream is made of the whole reply', async () => {
    await using stage = await staged({ engine: 'vllm' });
    const agent = await agentOf(stage.proxy, true);
    await agent.fork({ fields: { n: 2 } }).ask();
    expectExperts(builtOf(await stage.proxy.records('s')));
  });

  it('come with each of several replies, but not in a stream of SGLang, which tells those of one', async () => {
    await using stage = await staged({});
    const agent = await agentOf(stage.proxy, false);
    await agent.fork({ fields: { n: 2 } }).ask();
    expectExperts(builtOf(await stage.proxy.records('s')));
    await agent.fork({ stream: true, fields: { n: 2, seed: 5 } }).ask();
    const records = await stage.proxy.records('s');
    expect(records.map((record) => record.routedExpertsFault)).to.deep.equal(['', '', 'absent', 'absent']);
  });

  const FAULTS: readonly [fault: string, stage: Stage][] = [
    ['absent', { plays: { ...MODEL, layers: 0 }, says: MODEL }],
    ['wrong_length', { says: { ...MODEL, layers: 2 } }],
    ['out_of_range', { says: { ...MODEL, experts: 4 } }],
    ['absent', { engine: 'vllm', plays: { ...MODEL, layers: 0 }, says: MODEL }],
    // As many numbers, but not those of these layers.
    ['wrong_length', { engine: 'vllm', says: { ...MODEL, layers: 2, topK: 3 } }],
    ['out_of_range', { engine: 'vllm', says: { ...MODEL, experts: 4 } }],
  ];
  for (const [fault, stage] of FAULTS) {
    it(`are left out and counted where they do not fit: ${stage.engine ?? 'sglang'}, ${fault}`, async () => {
      await using there = await staged(stage);
      const agent = await agentOf(there.proxy, false);
      await agent.work(TURNS);
      const built = builtOf(await there.proxy.records('s'));
      expect(built.stats.expertsDropped).to.deep.equal({ [fault]: TURNS });
      expect(built.stats.trainedTokens).to.equal(built.stats.sampledTokens);
      for (const { routedExperts: rows } of built.traces) expect(rows).to.equal(undefined);
    });
  }

  it('are not asked for where they would not fit into a reply, and the call is trained as ever', async () => {
    // 42 KB for each id: too much for as many as an engine may sample without a limit.
    const model = { layers: 1_000, topK: 8, experts: 8 };
    await using stage = await staged({ plays: model, mode: 'token' });
    const agent = await agentOf(stage.proxy, true);
    const sent = await agent.ask();
    expect(sent).to.not.equal(undefined);
    await agent.fork({ stream: false }).ask();
    const records = await stage.proxy.records('s');
    expect(records.map((record) => record.routedExpertsFault)).to.deep.equal(['too_large', 'too_large']);
    const { stats, traces } = builtOf(records);
    expect(stats.expertsDropped).to.deep.equal({ too_large: 2 });
    expect(stats.trainedTokens).to.equal(stats.sampledTokens);
    for (const { routedExperts: rows } of traces) expect(rows).to.equal(undefined);
  });

  it('that one call lacks are told by the next one that reads its ids', async () => {
    await using stage = await staged({ mode: 'token' });
    const agent = await agentOf(stage.proxy, true);
    await agent.work(1);
    // Two replies in one stream: no experts.
    await agent.fork({ fields: { n: 2 } }).ask();
    await agent.work(TURNS);
    const records = await stage.proxy.records('s');
    expect(records.map((record) => record.routedExpertsFault)).to.include('absent');
    const { traces } = builtOf(records);
    const whole = traces.reduce((a, b) => (idsOf(a).length > idsOf(b).length ? a : b));
    expect([...whole.routedExperts!.known.subarray(0, -1)]).to.not.include(0);
  });
});
