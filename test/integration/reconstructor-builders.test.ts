// Builders with a configuration, and builders from plug-ins, over a real NATS server: one that fails ends its session only.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Trajectory, TrajectorySchema } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { builderConfigs } from '../../services/common/specs/strategies.ts';
import { build } from '../../services/reconstructor/domain/build.ts';
import { expand } from '../../services/reconstructor/domain/expand.ts';
import { seeded } from '../support/laws.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor } from '../support/reconstructor.ts';
import { recordsOf } from '../support/records.ts';
import { madeUpSession } from '../support/sessions.ts';

const PLUGINS = {
  'per-call.mjs': '(calls) => ({ traces: calls.map((call) => ({ calls: [call.callId] })) })',
  'throws.mjs': '() => { throw new Error("no idea"); }',
  'forever.mjs': '() => new Promise(() => setInterval(() => {}, 1_000_000))',
  'lossy.mjs': '() => ({ traces: [] })',
};
const session = madeUpSession(seeded(5), 20, 40);
const records = recordsOf(session);

describe('reconstructor: builders', () => {
  let nats: TestNats;
  let mesh: Mesh;
  let reconstructor: TestReconstructor;
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-builders-'));
    for (const [name, build] of Object.entries(PLUGINS)) {
      writeFileSync(join(folder, name), `export const builder = { build: ${build} };`);
    }
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    reconstructor = await startReconstructor(nats.url, { pluginsDir: folder });
  });
  after(async () => {
    await reconstructor[Symbol.asyncDispose]();
    await mesh.close();
    await nats[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const ask = async (
    name: string,
    strategy: string,
    config?: Record<string, string | number>,
  ): Promise<void> => {
    const range = await mesh.record(name, 1, records);
    await mesh.askForBuild(name, 1, strategy, range as never, config);
  };
  const outcome = async (name: string): Promise<{ reason: string; infrastructure: boolean } | Trajectory> => {
    const { kind } = await mesh.fact(name);
    if (kind.case === 'failed') {
      const { reason = '', infrastructure = true } = kind.value.failure ?? {};
      return { reason, infrastructure };
    }
    if (kind.case !== 'built') throw new Error(`${kind.case}`);
    return fromBinary(TrajectorySchema, await mesh.blobs.get(kind.value.trajectory!));
  };

  it('ends the sessions of plug-ins that fail, each with its reason and no other attempt, and builds the others', async () => {
    await ask('s-throws', 'throws.mjs');
    await ask('s-forever', 'forever.mjs');
    await ask('s-lossy', 'lossy.mjs');
    await ask('s-gone', 'gone.mjs');
    await ask('s-good', 'per-call.mjs');
    await ask('s-plain', 'prefix_merging');
    const failed = { reason: 'BUILDER_PLUGIN_FAILED', infrastructure: false };
    expect(await outcome('s-throws')).to.deep.equal(failed);
    expect(await outcome('s-forever')).to.deep.equal(failed);
    expect(await outcome('s-lossy')).to.deep.equal(failed);
    expect(await outcome('s-gone')).to.deep.equal({
      reason: 'BUILDER_PLUGIN_INVALID',
      infrastructure: false,
    });
    const good = (await outcome('s-good')) as Trajectory;
    expect(good.builder).to.equal('per-call.mjs');
    expect(good.traces).to.deep.equal(build('per_request', expand(records)).traces);
    expect(((await outcome('s-plain')) as Trajectory).builder).to.equal('prefix_merging');
  });

  it('builds by the configuration of the task, which goes with the trajectory', async () => {
    const config = { truncated: 'mask', abandoned: 'mask', max_trace_tokens: 8 };
    await ask('s-config', 'prefix_merging', config);
    const built = (await outcome('s-config')) as Trajectory;
    const want = build('prefix_merging', expand(records), builderConfigs.prefix_merging.parse(config));
    expect(built.traces).to.deep.equal(want.traces);
    expect(built.stats).to.deep.equal(want.stats);
    expect(built.builderConfig).to.deep.equal(config);
    expect(Object.keys(built.stats?.maskedTokens ?? {})).to.include('clipped');
  });
});
