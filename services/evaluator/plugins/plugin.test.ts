// Evaluator plug-ins, each run in its process: what they may do, and what becomes of those that do otherwise.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { OwnTime } from './own-time.ts';
import { answerOf, type Doing, evaluatorUrl } from './plugin.ts';

const NOTHING: Doing = async () => expect.fail('nothing was asked for');

describe('evaluator plug-ins', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-evaluators-'));
    mkdirSync(join(folder, 'plugins'));
  });
  after(() => rmSync(folder, { recursive: true }));

  let files = 0;
  const moduleOf = (text: string): string => {
    const path = join(folder, 'plugins', `m${++files}.mjs`);
    writeFileSync(path, text);
    return pathToFileURL(path).href;
  };
  const run = (
    body: string,
    doing = NOTHING,
    timeoutMs = 20_000,
    calls: readonly string[] = [],
    time = new OwnTime(),
  ) => {
    const url = moduleOf(`export const evaluator = { async evaluate(given) { ${body} } };`);
    const work = { url, calls, context: { options: { a: 1 }, outcome: 'completed' } };
    return answerOf('m.mjs', work, doing, { time, timeoutMs }, new AbortController().signal);
  };
  const refused = async (work: Promise<unknown>, reason: string, why: RegExp): Promise<void> => {
    const error = await work.then(
      (given) => expect.fail(`it gave ${given}`),
      (thrown: unknown) => thrown as PolarError,
    );
    expect([error.reason, error.message], error.message).to.satisfy(
      ([given, message]: [string, string]) => given === reason && why.test(message),
    );
  };

  it('get the session and its calls, and what they give is told', async () => {
    const body =
      'return { reward: given.calls.length + given.options.a, told: { all: given.calls, how: given.outcome } };';
    const json = await run(body, NOTHING, 20_000, ['{"call_id":"c0"}', '{"call_id":"c1"}']);
    expect(JSON.parse(json ?? '')).to.deep.equal({
      reward: 3,
      told: { all: [{ call_id: 'c0' }, { call_id: 'c1' }], how: 'completed' },
    });
  });

  it('have done what they ask of both sandboxes, one after the other, and are told what was wrong with it', async () => {
    const asked: unknown[] = [];
    let doneAtOnce = 0;
    const doing: Doing = async ({ sandbox, what }) => {
      expect(++doneAtOnce).to.equal(1);
      await new Promise((resolve) => setImmediate(resolve));
      doneAtOnce--;
      asked.push([sandbox, what]);
      if (sandbox === 'fresh') throw new PolarError('UNSAFE_PATH', 'it leads out');
      return Buffer.from('found');
    };
    const json = await run(
      `const { sandbox, fresh } = given;
      const all = await Promise.allSettled([sandbox.readFile('/a'), fresh.writeFile('/b', 'c', { mode: 0o700 })]);
      return [Buffer.from(all[0].value).toString(), all[1].reason.reason, all[1].reason.message];`,
      doing,
    );
    expect(JSON.parse(json ?? '')).to.deep.equal(['found', 'UNSAFE_PATH', 'it leads out']);
    expect(asked).to.deep.equal([
      ['live', { do: 'readFile', path: '/a' }],
      ['fresh', { do: 'writeFile', path: '/b', content: 'c', mode: 0o700 }],
    ]);
  });

  it('end with a sandbox that is lost, whatever they would make of it', async () => {
    const lost: Doing = async () => {
      throw new PolarError('RUNTIME_LOST', 'it is gone');
    };
    const body = 'try { await given.sandbox.exec("true"); } catch {} return { reward: 1 };';
    await refused(run(body, lost), 'RUNTIME_LOST', /it is gone/);
    await refused(
      run(`void given.sandbox.exec("true"); await new Promise(() => {});`, lost),
      'RUNTIME_LOST',
      /gone/,
    );
  });

  it('fail by name when they throw, give nothing, ask too much, or end their process', async () => {
    const failing = (body: string, why: RegExp): Promise<void> =>
      refused(run(body), 'EVALUATOR_PLUGIN_FAILED', why);
    await failing('\n\nthrow new Error("no idea");', /m\.mjs: it threw in line 3: no idea/);
    await failing('throw "no idea";', /it threw: no idea/);
    await failing('', /it gave nothing/);
    await failing('return { reward: 1n };', /it threw: .*BigInt/);
    await failing('const ring = {}; ring.ring = ring; return ring;', /it threw: .*circular/);
    await failing('process.exit(0);', /its process ended with exit code 0/);
    const slow: Doing = () => new Promise(() => {});
    const many = 'await Promise.all(Array.from({ length: 65 }, () => given.fresh.exec("true")));';
    await refused(run(many, slow), 'EVALUATOR_PLUGIN_FAILED', /more than 64 things at once/);
  });

  it('are not to blame where the node has no descriptors for their processes', () => {
    const code = `import { openSync } from 'node:fs';
      import { answerOf } from ${JSON.stringify(join(import.meta.dirname, 'plugin.ts'))};
      import { OwnTime } from ${JSON.stringify(join(import.meta.dirname, 'own-time.ts'))};
      try { for (;;) openSync('/dev/null'); } catch {}
      const [work, limit] = [{ url: 'file:///m.mjs', calls: [], context: {} }, { time: new OwnTime(), timeoutMs: 9_000 }];
      const error = await answerOf('m.mjs', work, () => {}, limit, new AbortController().signal).catch((thrown) => thrown);
      process.stdout.write(error.reason + ': ' + error.message, () => process.exit());`;
    const node = [process.execPath, '--input-type=module', '-e', code];
    const { stdout } = spawnSync('sh', ['-c', 'ulimit -n 64; exec "$@"', 'sh', ...node], {
      encoding: 'utf8',
    });
    expect(stdout).to.equal('SANDBOX_FAILED: evaluator m.mjs: spawn sh EMFILE');
  });

  it('have a limit, be it in an endless loop or in a wait', async () => {
    for (const body of ['for (;;);', 'await new Promise(() => {});']) {
      expect(await run(body, NOTHING, 300), body).to.equal(undefined);
    }
  });

  it('are not late for what the making of their sandboxes takes', async () => {
    const slow: Doing = () => sleep(900);
    const body = 'await given.fresh.exec("true"); return { reward: 1 };';
    // Made all the while, so that what this machine takes for the process is not counted either.
    const time = new OwnTime();
    const made = Promise.withResolvers<void>();
    const making = time.without(() => made.promise);
    expect(await run(body, slow, 600, [], time)).to.equal('{"reward":1}');
    made.resolve();
    await making;
    expect(await run(body, slow, 600)).to.equal(undefined);
  });

  it('are modules of the folder that export one', async () => {
    const load = (text: string) =>
      answerOf(
        'm.mjs',
        { url: moduleOf(text), calls: [], context: {} },
        NOTHING,
        { time: new OwnTime(), timeoutMs: 20_000 },
        new AbortController().signal,
      );
    const INVALID = 'EVALUATOR_PLUGIN_INVALID';
    await refused(load('export const builder = {};'), INVALID, /exports no `evaluator` with a function/);
    await refused(load('throw new Error("not today");'), INVALID, /cannot be loaded in line 1: not today/);
    const short = 'throw Object.assign(new Error("stale file handle"), { code: "ESTALE" });';
    await refused(load(short), 'SANDBOX_FAILED', /cannot be loaded in line 1: stale file handle/);
    writeFileSync(join(folder, 'outside.mjs'), '');
    symlinkSync('../outside.mjs', join(folder, 'plugins', 'out.mjs'));
    const plugins = join(folder, 'plugins');
    await refused(evaluatorUrl(plugins, 'out.mjs'), INVALID, /outside of plugins_dir/);
    await refused(evaluatorUrl(plugins, 'none.mjs'), INVALID, /not there \(ENOENT\)/);
    await refused(evaluatorUrl(undefined, 'm1.mjs'), INVALID, /no plugins_dir/);
  });
});
