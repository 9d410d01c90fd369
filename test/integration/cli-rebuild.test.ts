// `polar rebuild`: exact on the vectors, lawful on random forests, and everything that is wrong with a file by name.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { checkForests } from '../laws/forests.ts';
import { type Ended, polar, ROOT, startPolar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';

interface Vector {
  readonly name: string;
  readonly calls: object[];
  readonly expect: { readonly traces: { logprobs: number[] }[]; readonly masked?: Record<string, number> };
}

const vectorsFolder = join(ROOT, 'test/vectors');
const vectors = readdirSync(vectorsFolder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(join(vectorsFolder, name), 'utf8')) as Vector);

const call = (changes: object = {}): object => ({
  call_id: 'c1',
  start_seq: 1,
  end_seq: 2,
  prompt_ids: [1, 2],
  sampled_ids: [3, 4],
  logprobs: [-0.5, -0.25],
  finish_reason: 'stop',
  ...changes,
});

describe('polar rebuild', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-rebuild-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const out = (): string => join(folder, 'traces.jsonl');
  const run = async (text: string, ...flags: string[]): Promise<Ended> => {
    const calls = join(folder, 'calls.jsonl');
    writeFileSync(calls, text);
    return await polar(['rebuild', '--calls', calls, '--traces', out(), ...flags]);
  };
  const lines = (...values: object[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('');
  const traces = (): Record<string, unknown>[] =>
    readFileSync(out(), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it('makes of all vectors in one file exactly the traces that must come out', async () => {
    const given = vectors.flatMap(({ name, calls }) => calls.map((one) => ({ session_id: name, ...one })));
    const { code, stdout } = await run(lines(...given.reverse()), '--json');
    expect(code).to.equal(0);
    const made = Map.groupBy(traces(), (trace) => trace['session_id']);
    const masked: Record<string, number> = {};
    for (const { name, expect: want } of vectors) {
      const wanted = want.traces.map((trace) => ({
        session_id: name,
        ...trace,
        logprobs: trace.logprobs.map(Math.fround),
      }));
      expect(made.get(name) ?? [], name).to.have.deep.members(wanted);
      for (const [reason, count] of Object.entries(want.masked ?? {}))
        masked[reason] = (masked[reason] ?? 0) + count;
    }
    expect((JSON.parse(stdout) as { masked_tokens: object }).masked_tokens).to.deep.equal(masked);
  });

  it('has the file of its traces to itself', async () => {
    const fifo = join(folder, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const first = polar(['rebuild', '--calls', fifo, '--traces', out()]);
    // It opens when the command reads there, which is then about to write.
    const calls = await open(fifo, 'w');
    const { code, stderr } = await run(lines(call()));
    expect([code, stderr]).to.deep.equal([
      2,
      `polar: INVALID_REQUEST: ${out()} cannot be written: another process writes it now\n`,
    ]);
    await calls.write(lines(call(), call({ call_id: 'c2', prompt_ids: [7] })));
    await calls.close();
    expect((await first).code).to.equal(0);
    expect(traces()).to.have.length(2);
    expect((await run(lines(call()))).code, 'it is over').to.equal(0);
    expect(readdirSync(folder)).to.have.members(['calls.jsonl', 'fifo', 'traces.jsonl']);
  });

  it('reads calls from standard input, and behind the mark that some programs begin a file with', async () => {
    const args = [join(ROOT, 'bin/polar.js'), 'rebuild', '--calls', '-', '--traces', out()];
    const { status, stderr } = spawnSync(process.execPath, args, { input: lines(call()), encoding: 'utf8' });
    expect([status, stderr]).to.deep.equal([0, '']);
    expect(traces()).to.have.length(1);
    expect((await run(`\ufeff${lines(call(), call({ call_id: 'c2', prompt_ids: [7] }))}`)).code).to.equal(0);
    expect(traces()).to.have.length(2);
  });

  it('puts no traces in the place of the calls', async () => {
    const calls = join(folder, 'calls.jsonl');
    const link = join(folder, 'link.jsonl');
    writeFileSync(calls, lines(call()));
    symlinkSync(calls, link);
    const { code, stderr } = await polar(['rebuild', '--calls', calls, '--traces', link]);
    expect([code, stderr]).to.deep.equal([
      2,
      `polar: INVALID_REQUEST: ${link} holds the calls that are read: name another file for the traces\n`,
    ]);
    expect(readFileSync(calls, 'utf8')).to.equal(lines(call()));
  });

  it('keeps the laws on 100 random forests, shuffled, with calls missing and lines repeated', async () => {
    const { sessions, calls, holes, repeated, breaches, report } = await checkForests(100, 'prefix_merging');
    expect(breaches).to.deep.equal([]);
    expect([sessions, report['sessions'], report['calls']]).to.deep.equal([100, 100, calls]);
    expect(report['lines_left_out']).to.deep.equal({ repeated });
    expect(holes).to.be.greaterThan(10);
  });

  it('names and counts what is wrong with a file, and builds the rest', async () => {
    const good = call();
    const second = call({
      call_id: 'c2',
      start_seq: 3,
      end_seq: 4,
      prompt_ids: [1, 2, 3, 4, 5],
      sampled_ids: [6],
    });
    const text = [
      JSON.stringify({ ...second, logprobs: [] }),
      'no JSON at all',
      JSON.stringify(good),
      JSON.stringify(good),
      JSON.stringify({ ...good, sampled_ids: [9, 9] }),
      JSON.stringify(call({ call_id: 'ids', prompt_ids: [1, -2] })),
      JSON.stringify(call({ call_id: 'reason', finish_reason: 'bored' })),
      JSON.stringify(call({ call_id: '' })),
      '[1, 2]',
      JSON.stringify(call({ call_id: 'nan', start_seq: 7, end_seq: 8, prompt_ids: [8] })).replace(
        '-0.25',
        'NaN',
      ),
      JSON.stringify(call({ call_id: 'torn' })).slice(0, -9),
    ].join('\n');
    const { code, stdout } = await run(text, '--json');
    expect(code).to.equal(1);
    const report = JSON.parse(stdout) as {
      lines_left_out: object;
      first_lines: { line: number; kind: string; why: string }[];
      masked_tokens: object;
      order_gaps: number;
    };
    expect(report.lines_left_out).to.deep.equal({
      unreadable: 2,
      repeated: 1,
      duplicate: 1,
      invalid: 3,
      torn: 1,
    });
    expect(report.first_lines.map(({ line, kind }) => [line, kind])).to.deep.include.members([
      [2, 'unreadable'],
      [4, 'repeated'],
      [5, 'duplicate'],
      [11, 'torn'],
    ]);
    expect(report.first_lines.find(({ line }) => line === 6)?.why).to.equal(
      'prompt_ids must be a list of ids',
    );
    expect(report.masked_tokens).to.deep.equal({ no_logprob: 2 });
    expect(report.order_gaps).to.equal(2);
    expect(traces().map((trace) => [trace['calls'], trace['loss_mask']])).to.deep.equal([
      [['c1'], [1, 1]],
      [['nan'], [1, 0]],
    ]);
  });

  it('builds with another strategy, with policies, and with a module of one’s own', async () => {
    const given = lines(
      call(),
      call({ call_id: 'c2', start_seq: 3, end_seq: 4, prompt_ids: [1, 2, 3, 4, 5], finish_reason: 'length' }),
    );
    const made = async (...flags: string[]): Promise<unknown[]> => {
      const { code, stderr } = await run(given, ...flags);
      expect(code, stderr).to.equal(0);
      return traces().map((trace) => trace['calls']);
    };
    expect(await made()).to.deep.equal([['c1', 'c2']]);
    expect(await made('--builder', 'per_request')).to.deep.equal([['c1'], ['c2']]);
    expect(await made('--builder-config', '{"truncated": "mask"}')).to.deep.equal([['c1']]);
    const config = join(folder, 'config.yaml');
    writeFileSync(config, 'max_trace_tokens: 5\n');
    expect(await made('--builder-config', config)).to.deep.equal([['c1']]);
    const module = join(ROOT, 'test/support/builders/last-call.mjs');
    expect(await made('--builder', module)).to.deep.equal([['c1', 'c2']]);
    expect(await made('--builder', pathToFileURL(module).href)).to.deep.equal([['c1', 'c2']]);
  });

  it('leaves out the sessions that a module of one’s own fails for', async () => {
    const module = join(folder, 'picky.mjs');
    writeFileSync(
      module,
      `export const builder = { build: ([first]) => {
        if (first.promptLength === 1) throw new Error('too short');
        return { traces: [{ calls: [first.callId] }] };
      } };`,
    );
    const given = lines({ session_id: 'a', ...call() }, { session_id: 'b', ...call({ prompt_ids: [1] }) });
    const { code, stdout } = await run(given, '--builder', module);
    expect(code).to.equal(1);
    expect(stdout).to.match(/sessions not built: 1\n {2}b: BUILDER_PLUGIN_FAILED: .*too short/);
    expect(traces().map((trace) => trace['session_id'])).to.deep.equal(['a']);
  });

  it('says in one line what it was not given, and leaves nothing half written', async () => {
    const wrong = async (why: RegExp, ...flags: string[]): Promise<void> => {
      const { code, stderr } = await run(lines(call()), ...flags);
      expect([code, stderr]).to.satisfy(
        ([c, s]: [number, string]) => c === 2 && why.test(s),
        `${code}: ${stderr}`,
      );
      expect(existsSync(out())).to.equal(false);
    };
    await wrong(/UNKNOWN_BUILDER: .*per_request, prefix_merging/, '--builder', 'telepathy');
    await wrong(/max_trace_token: unknown key/, '--builder-config', '{"max_trace_token": 1}');
    await wrong(/--builder-config cannot be read/, '--builder-config', join(folder, 'none.json'));
    await wrong(/cannot be read: ENOENT/, '--calls', join(folder, 'none.jsonl'));
    await wrong(/cannot be written: ENOENT/, '--traces', join(folder, 'none', 'traces.jsonl'));
    expect((await polar(['rebuild', '--traces', out()])).stderr).to.contain(
      'one of TASK-OR-SESSION and --calls is needed',
    );
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).to.deep.equal([]);
  });

  it('builds nothing with a module that cannot be loaded, and says once why', async () => {
    const given = lines({ session_id: 'a', ...call() }, { session_id: 'b', ...call() });
    const wrong = async (name: string, why: string): Promise<void> => {
      const { code, stdout, stderr } = await run(given, '--builder', join(folder, name));
      const message = `polar: BUILDER_PLUGIN_INVALID: builder ${name}: ${why}\n`;
      expect([code, stdout, stderr]).to.deep.equal([2, '', message]);
      expect(existsSync(out())).to.equal(false);
    };
    await wrong('nope.mjs', 'it is not there');
    writeFileSync(join(folder, 'throws.mjs'), '\nthrow new Error("no");');
    await wrong('throws.mjs', 'it cannot be loaded in line 2: no');
  });

  it('ends with Ctrl-C as commands do, and leaves nothing half written', async () => {
    const calls = join(folder, 'calls.jsonl');
    const [module, begun] = [join(folder, 'slow.mjs'), join(folder, 'begun')];
    writeFileSync(calls, lines({ session_id: 'a', ...call() }, { session_id: 'b', ...call() }));
    writeFileSync(
      module,
      `import { existsSync, writeFileSync } from 'node:fs';
      export const builder = { build: ([first]) => {
        if (existsSync(${JSON.stringify(begun)})) return new Promise(() => setInterval(() => {}, 1000));
        writeFileSync(${JSON.stringify(begun)}, '');
        return { traces: [{ calls: [first.callId] }] };
      } };`,
    );
    const { child, ended } = startPolar([
      'rebuild',
      '--calls',
      calls,
      '--traces',
      out(),
      '--builder',
      module,
    ]);
    await eventually('the first one is built', () => existsSync(begun));
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    expect(code).to.equal(130);
    // How far it has come is told once a second.
    expect(stderr).to.match(/^(built 1 of 2 sessions\n)?polar: CANCELLED: ended by SIGINT\n$/);
    expect(readdirSync(folder)).to.have.members(['calls.jsonl', 'slow.mjs', 'begun']);
  });
});
