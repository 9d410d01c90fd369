// `polar rebuild` of what a mesh has stored: a task and a session of it, with another builder, and each reason why not.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { openBus } from '../../services/common/nats/bus.ts';
import { createStore } from '../../services/reconstructor/retention/store.ts';
import { type Ended, polar } from '../support/cli.ts';
import { itLong } from '../support/long.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const SAMPLES = 3;
/** A conversation of two turns. */
const AGENT = `
import json, os, urllib.request
messages = [{'role': 'user', 'content': 'count'}]
for turn in range(2):
    body = json.dumps({'model': 'm', 'messages': messages}).encode()
    request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body, {
        'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY'], 'content-type': 'application/json'})
    reply = json.load(urllib.request.urlopen(request))['choices'][0]['message']
    messages += [reply, {'role': 'user', 'content': 'go on'}]
`;

describe('polar rebuild, of what a mesh has stored', function () {
  this.timeout(120_000);
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-rebuild-mesh-'));
  let mesh: Mesh;
  let sessions: Session[];
  before(async () => {
    mesh = await startMesh({ defaultBackend: 'process' });
    const rollout = createPlainClient(RolloutService, mesh.schedulerUrl);
    const command = { command: `python3 -c "${AGENT}"` };
    const harness = { name: 'shell', modelName: 'm', command };
    await rollout.submitTask({ spec: curlTask('two-turns', SAMPLES, 0, { harness }) });
    sessions = await waitForEnd(rollout, 'two-turns', 60_000);
    const sleeps = { name: 'shell', modelName: 'm', command: { command: 'sleep 90' } };
    await rollout.submitTask({ spec: curlTask('runs', 2, 0, { harness: sleeps }) });
  });
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const out = join(folder, 'traces.jsonl');
  const run = (...args: string[]): Promise<Ended> => polar(['rebuild', '-c', mesh.topologyFile, ...args]);
  const traces = (): { session_id: string; calls: string[] }[] =>
    readFileSync(out, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { session_id: string; calls: string[] });
  const callsOf = () => traces().map(({ session_id, calls }) => [session_id, calls.length]);
  const ids = () => sessions.map(({ sessionId }) => sessionId);

  it('builds a task with any builder, session after session', async () => {
    const merged = await run('two-turns', '--traces', out, '--json');
    expect(merged.code, merged.stderr).to.equal(0);
    expect(JSON.parse(merged.stdout)).to.include({ sessions: SAMPLES, calls: 2 * SAMPLES, traces: SAMPLES });
    expect(callsOf()).to.deep.equal(ids().map((id) => [id, 2]));
    const single = await run('two-turns', '--builder', 'per_request', '--traces', out);
    expect(single.stdout).to.contain(`per_request: ${SAMPLES} sessions, ${2 * SAMPLES} calls`);
    expect(callsOf()).to.deep.equal(ids().flatMap((id) => [1, 1].map((calls) => [id, calls])));
  });

  it('says so where an export or a rebuild meets a full disk, and leaves nothing', async () => {
    const [id = ''] = ids();
    const config = ['-c', mesh.topologyFile];
    const full = join(folder, 'full.jsonl');
    for (const args of [
      ['export', ...config, id, '--calls', '-o', full],
      ['rebuild', ...config, id, '--traces', full],
    ]) {
      // What is written goes to a device that is always full.
      symlinkSync('/dev/full', `${full}.part`);
      const { code, stderr } = await polar(args);
      expect({ code, there: existsSync(full) }).to.deep.equal({ code: 2, there: false });
      expect(stderr)
        .to.contain('INVALID_REQUEST')
        .and.to.contain('cannot be written')
        .and.to.contain('ENOSPC');
      expect(readdirSync(folder)).to.not.include('full.jsonl.part');
    }
  });

  itLong('write where a link leads, and into what is no file: nothing takes their place', async () => {
    const [id = ''] = ids();
    const config = ['-c', mesh.topologyFile];
    const at = (name: string): string => join(folder, name);
    const [file, link, fifo] = [at('aim.jsonl'), at('link.jsonl'), at('fifo')];
    symlinkSync(file, link);
    execFileSync('mkfifo', [fifo]);
    for (const args of [
      ['export', ...config, id, '--calls', '-o'],
      ['rebuild', ...config, id, '--traces'],
    ]) {
      // The link leads nowhere at first, then to what the first command wrote.
      for (const _ of [1, 2]) expect((await polar([...args, link])).code).to.equal(0);
      expect(lstatSync(link).isSymbolicLink()).to.equal(true);
      const reader = spawn('cat', [fifo], { stdio: ['ignore', 'pipe', 'ignore'] });
      const read = text(reader.stdout);
      try {
        expect((await polar([...args, fifo])).code).to.equal(0);
        expect(lstatSync(fifo).isFIFO()).to.equal(true);
        expect(await read)
          .to.equal(readFileSync(file, 'utf8'))
          .and.not.to.equal('');
      } finally {
        reader.kill();
      }
      expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).to.deep.equal([]);
    }
  });

  it('builds one session, as the mesh built it, and writes nothing where no file is named', async () => {
    const [id = ''] = ids();
    const { code } = await run(id, '--traces', out);
    const stored = await polar(['export', '-c', mesh.topologyFile, id, '--traces']);
    expect([code, stored.code]).to.deep.equal([0, 0]);
    expect(traces()).to.deep.equal(
      stored.stdout
        .trim()
        .split('\n')
        .map((line) => ({ session_id: id, ...JSON.parse(line) })),
    );
    const before = readdirSync(folder);
    const told = await run(id, '--builder-config', '{"max_trace_tokens": 5}', '--json');
    expect(JSON.parse(told.stdout)).to.include({ sessions: 1, trained_tokens: 0 });
    expect(readdirSync(folder)).to.deep.equal(before);
  });

  itLong('says in one line why a session cannot be had, and writes nothing', async () => {
    rmSync(out, { force: true });
    const refused = async (why: RegExp, code: number, ...args: string[]): Promise<void> => {
      const ended = await run(...args, '--traces', out);
      expect(ended.stderr).to.match(why);
      expect(ended.stderr.trim().split('\n')).to.have.length(1);
      expect([ended.code, existsSync(out)]).to.deep.equal([code, false]);
    };
    await refused(/NOT_FOUND: no task or session nobody/, 1, 'nobody');
    await refused(/NOT_ENDED: session \S+ of task runs has not ended, .* 1 others of 2/, 1, 'runs');
    await refused(
      /MESH_UNREACHABLE: nobody answers at/,
      3,
      'two-turns',
      '--rollout-url',
      'http://127.0.0.1:9',
    );
    await refused(
      /MESH_UNREACHABLE: nobody answers at .*:9/,
      3,
      'two-turns',
      '--trajectory-url',
      'http://127.0.0.1:9',
    );
    await refused(/UNKNOWN_BUILDER/, 2, 'two-turns', '--builder', 'telepathy');
    await refused(/one of TASK-OR-SESSION and --calls is needed/, 2);
    await refused(/one of TASK-OR-SESSION and --calls is needed/, 2, 'two-turns', '--calls', 'x');
  });

  it('counts a session whose records are gone, and builds the others', async () => {
    rmSync(out, { force: true });
    const bus = await openBus({ url: mesh.nats.url, name: 'test' });
    const [gone = '', ...left] = ids();
    await createStore(bus).removeRecords(gone, 1, AbortSignal.timeout(10_000));
    await bus.close();
    const alone = await run(gone, '--traces', out);
    expect([alone.code, existsSync(out)]).to.deep.equal([1, false]);
    expect(alone.stderr).to.match(/^polar: RECORDS_MISSING: 2 of the 2 recorded calls .* retention/);
    const all = await run('two-turns', '--traces', out);
    expect(all.code).to.equal(1);
    expect(all.stdout).to.contain(`sessions not built: 1\n  ${gone}: RECORDS_MISSING`);
    expect(callsOf()).to.deep.equal(left.map((id) => [id, 2]));
  });
});
