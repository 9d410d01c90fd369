// Builder plug-ins, each run in its process: what they may do, and what becomes of those that do otherwise.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import type { JsonObject } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { eventually } from '../../../test/support/eventually.ts';
import { seeded } from '../../../test/support/laws.ts';
import { recordsOf } from '../../../test/support/records.ts';
import { processesWith } from '../../../test/support/runtime-prewarm.ts';
import { madeUpSession } from '../../../test/support/sessions.ts';
import { sleepMark } from '../../../test/support/sleep-mark.ts';
import { breachesOf } from '../../../test/support/trace-laws.ts';
import { PolarError } from '../../common/errors.ts';
import { type Build, build } from '../domain/build.ts';
import { expand } from '../domain/expand.ts';
import { builderOf } from './build-with.ts';

const LAST_CALL = join(import.meta.dirname, '../../../test/support/builders/last-call.mjs');
const session = madeUpSession(seeded(5), 20, 40);
const calls = expand(recordsOf(session));

describe('builder plug-ins', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-builders-'));
    mkdirSync(join(folder, 'plugins'));
  });
  after(() => rmSync(folder, { recursive: true }));

  const plugins = (seconds = 20) => ({
    plugins_dir: join(folder, 'plugins'),
    plugin_timeout_seconds: seconds,
  });
  const run = async (path: string, config?: JsonObject, seconds?: number): Promise<Build> => {
    const builder = await builderOf(path, config, plugins(seconds));
    return await builder.build(calls, new AbortController().signal);
  };
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, 'plugins', name), text);
    return name;
  };
  const planning = (name: string, body: string): string =>
    write(name, `export const builder = { build(calls, options) { ${body} } };`);
  const refused = async (work: Promise<unknown>, reason: string, why: RegExp): Promise<void> => {
    const error = await work.then(
      () => expect.fail('it was accepted'),
      (thrown: unknown) => thrown as PolarError,
    );
    expect(error).to.be.instanceOf(PolarError);
    expect([error.reason, error.message]).to.satisfy(
      ([given, message]: [string, string]) => given === reason && why.test(message),
      `${error.reason}: ${error.message}`,
    );
  };

  it('build as docs/task-file.md shows it, of a session without calls, too', async () => {
    const doc = readFileSync(join(import.meta.dirname, '../../../docs/task-file.md'), 'utf8');
    const shown = /```js\n(export const builder = [\s\S]*?)```/.exec(doc)?.[1] ?? '';
    const { build } = await builderOf(
      write('last-branch.mjs', shown),
      { options: { reason: 'earlier_branch' } },
      plugins(),
    );
    const { signal } = new AbortController();
    const built = await build(calls, signal);
    expect(built.traces).to.have.length(1);
    expect(built.stats.maskedTokens).to.have.property('earlier_branch');
    expect((await build([], signal)).traces).to.deep.equal([]);
  });

  it('build what they plan of the calls, in TypeScript or JavaScript, with options of their own', async () => {
    const perCall = write(
      'per-call.ts',
      `interface Call { callId: string }
      export const builder = { build: (calls: Call[]) => ({ traces: calls.map((c) => ({ calls: [c.callId] })) }) };`,
    );
    expect((await run(perCall)).traces).to.deep.equal(build('per_request', calls).traces);

    write('last-call.mjs', `export { builder } from ${JSON.stringify(LAST_CALL)};`);
    const last = await run('last-call.mjs', { options: { reason: 'before_the_last' } });
    expect(breachesOf(session, last)).to.deep.equal([]);
    expect(last.traces.length).to.equal(1);
    expect(Object.keys(last.stats.maskedTokens)).to.include('before_the_last');
  });

  it('are shown calls whose prompts are put together from those that they extend', async () => {
    const check = planning(
      'check.mjs',
      `const ends = new Map([[null, []]]);
      for (const call of calls) {
        const prompt = [...ends.get(call.extends), ...call.newIds];
        if (prompt.length !== call.promptLength) throw new Error(call.callId);
        ends.set(call.callId, [...prompt, ...call.sampledIds]);
      }
      return { traces: [], masks: calls.map((c) => ({ call: c.callId, reason: 'seen' })) };`,
    );
    const { traces, stats } = await run(check);
    expect(traces).to.deep.equal([]);
    expect(Number(stats.trainedTokens)).to.equal(0);
  });

  it('come after the policies of the configuration, and before its longest trace', async () => {
    const all = planning('all.mjs', 'return { traces: calls.map((c) => ({ calls: [c.callId] })) };');
    const made = await run(all, { truncated: 'mask', max_trace_tokens: 12 });
    expect(breachesOf(session, made, 12)).to.deep.equal([]);
    expect(Object.keys(made.stats.maskedTokens)).to.include('clipped');
    await refused(run(all, { truncate: true }), 'INVALID_TASK', /builder\.config.*\n.*truncate: unknown key/);
  });

  it('fail by name when they throw, never return, use up memory, or end their process', async () => {
    const failing = (name: string, body: string, why: RegExp, seconds?: number): Promise<void> =>
      refused(run(planning(name, body), {}, seconds), 'BUILDER_PLUGIN_FAILED', why);
    await failing(
      'throws.mjs',
      '\n\nthrow new Error("no idea");',
      /throws\.mjs: it threw in line 3: no idea/,
    );
    await failing('text.mjs', 'throw "no idea";', /text\.mjs: it threw: no idea/);
    await failing('loops.mjs', 'for (;;);', /loops\.mjs: it gave nothing in 300 ms/, 0.3);
    await failing('waits.mjs', 'return new Promise(() => setInterval(() => {}, 1e6));', /gave nothing/, 0.3);
    await failing('exits.mjs', 'process.exit(0);', /exits\.mjs: its process ended with exit code 0/);
    await failing(
      'eats.mjs',
      'const all = []; for (;;) all.push(new Array(2e7).fill({}));',
      /its process ended/,
    );
  });

  it('are not to blame where the machine is short of what reading them, or their process, takes', async () => {
    const short = 'throw Object.assign(new Error("stale file handle"), { code: "ESTALE" });';
    await refused(run(write('stale.mjs', short)), 'INTERNAL', /stale\.mjs: .*line 1: stale file handle/);
    const code = `import { openSync } from 'node:fs';
      import { planOf } from ${JSON.stringify(join(import.meta.dirname, 'plugin.ts'))};
      try { for (;;) openSync('/dev/null'); } catch {}
      const { signal } = new AbortController();
      const error = await planOf('file:///m.mjs', [], {}, 9_000, signal).catch((thrown) => thrown);
      process.stdout.write(error.reason + ': ' + error.message, () => process.exit());`;
    const node = [process.execPath, '--input-type=module', '-e', code];
    const { stdout } = spawnSync('sh', ['-c', 'ulimit -n 64; exec "$@"', 'sh', ...node], {
      encoding: 'utf8',
    });
    expect(stdout).to.equal('INTERNAL: builder m.mjs: spawn sh EMFILE');
  });

  it('may write a bounded memory, in arrays beside the heap, too', async () => {
    const body = 'const all = []; for (;;) all.push(new Float64Array(1e7).fill(1));';
    await refused(
      run(planning('arrays.mjs', body)),
      'BUILDER_PLUGIN_FAILED',
      /it threw.*: .*allocation failed/,
    );
  });

  it('are refused a plan that breaks a law', async () => {
    const plan = (name: string, value: string, why: RegExp): Promise<void> =>
      refused(run(planning(name, `return ${value};`)), 'BUILDER_PLUGIN_FAILED', why);
    await plan('nothing.mjs', 'undefined', /\(document\): is missing/);
    await plan('drops.mjs', '{ traces: [] }', /is in no trace/);
    await plan('twice.mjs', '{ traces: [calls[0], calls[0]].map((c) => ({ calls: [c.callId] })) }', /twice/);
    await plan('joins.mjs', '{ traces: [{ calls: calls.map((c) => c.callId) }] }', /was not served that/);
    await plan('made-up.mjs', '{ traces: [{ calls: ["nobody"] }] }', /no call nobody/);
    await plan(
      'far.mjs',
      '{ traces: [], masks: [{ call: calls[0].callId, reason: "x", end: 99999 }] }',
      /99999/,
    );
    await plan(
      'spells.mjs',
      '{ traces: [], masks: [{ call: calls[0].callId, reason: "No!" }] }',
      /reason must be/,
    );
    await plan(
      'chatters.mjs',
      '{ traces: [], masks: Array.from({ length: 257 }, (_, i) => ({ call: calls[0].callId, reason: "r" + i })) }',
      /257 reasons, at most REASONS_MAX/,
    );
    await plan(
      'no-mask.mjs',
      '{ traces: [], masks: [{ call: "x", raeson: 1 }] }',
      /masks\[0\]\.raeson.*reason/,
    );
    await plan('no-call.mjs', '{ traces: [{ calls: [1] }] }', /traces\[0\]\.calls\[0\]: .*string/);
    await plan(
      'many.mjs',
      '{ traces: [], masks: Array.from({ length: 100_000 }, () => ({ call: 1 })) }',
      /has \d{1,3} fault\(s\):\n {2}masks\[0\]\.call/,
    );
    await plan(
      'many-traces.mjs',
      '{ traces: Array.from({ length: 100_000 }, () => ({ calls: [calls[0].callId] })) }',
      /has 100000 traces, more than the 20 calls/,
    );
    await plan('hole.mjs', '{ traces: [{ calls: new Array(1) }] }', /traces\[0\]\.calls\[0\]: is missing/);
    await plan('extra.mjs', '{ traces: [], ids: [1] }', /ids: unknown key/);
  });

  it('are modules of the folder only', async () => {
    const invalid = (path: string, why: RegExp): Promise<void> =>
      refused(run(path), 'BUILDER_PLUGIN_INVALID', why);
    writeFileSync(join(folder, 'outside.mjs'), 'export const builder = {};');
    symlinkSync(join(folder, 'outside.mjs'), join(folder, 'plugins', 'link.mjs'));
    await invalid('link.mjs', /outside of plugins_dir/);
    await invalid('nowhere.mjs', /ENOENT/);
    await invalid(write('bare.mjs', 'export const other = 1;'), /exports no `builder`/);
    await invalid(write('broken.mjs', 'export const ='), /cannot be loaded/);
    await invalid(write('throws.mjs', '\nthrow new Error("no");'), /cannot be loaded in line 2: no/);
    const without = builderOf('bare.mjs', undefined, { plugin_timeout_seconds: 1 });
    await refused(without, 'BUILDER_PLUGIN_INVALID', /plugins_dir is not set/);
    await refused(
      builderOf('router_policy', undefined, plugins()),
      'UNKNOWN_BUILDER',
      /per_request, prefix_merging/,
    );
  });

  it('answer by their plan alone, whatever their modules say to a parent process', async () => {
    const says = write(
      'says.mjs',
      `process.send?.('ready');
      export const builder = { build: (calls) => ({ traces: calls.map((c) => ({ calls: [c.callId] })) }) };`,
    );
    expect((await run(says)).traces).to.deep.equal(build('per_request', calls).traces);
  });

  it('leave no process of theirs behind', async () => {
    const mark = sleepMark();
    const starts = write(
      'starts.mjs',
      `import { spawn } from 'node:child_process';
      export const builder = {
        build() {
          spawn('/bin/sh', ['-c', '${mark}; true'], { stdio: 'ignore' }).unref();
          throw new Error('it started');
        },
      };`,
    );
    await refused(run(starts), 'BUILDER_PLUGIN_FAILED', /it started/);
    await eventually(`${mark} has ended`, () => processesWith(mark).length === 0, 5_000);
  });

  it('stop when their build is over', async () => {
    const stop = new AbortController();
    const builder = await builderOf(planning('forever.mjs', 'for (;;);'), {}, plugins(60));
    const work = builder.build(calls, stop.signal);
    setTimeout(() => stop.abort(new PolarError('SHUTTING_DOWN', 'over')), 100);
    await refused(work, 'SHUTTING_DOWN', /over/);
  });
});
