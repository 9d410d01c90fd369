// A Python callable as a harness in a real sandbox, and `polar logs` on what it left.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { polar, ROOT, startPolar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { waitForEnd } from '../support/tasks.ts';

const AGENT = `
import json, sys, urllib.request
from pathlib import Path

def solve(session):
    body = {"model": "m", "messages": [{"role": "user", "content": session.instruction}]}
    headers = {"authorization": f"Bearer {session.api_key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{session.base_url}/chat/completions", json.dumps(body).encode(), headers)
    reply = json.load(urllib.request.urlopen(request))
    session.artifacts_dir.mkdir(exist_ok=True)
    (session.artifacts_dir / "reply.json").write_text(json.dumps(reply["choices"][0]["message"]))
    print("asked", session.instruction)
    print("a warning", file=sys.stderr)
    return 5
`;
const SKILL = '---\nname: juggling\ndescription: How to juggle.\n---\nSlowly.\n';
const WAIT_MS = 60_000;

describe('polar logs', function () {
  this.timeout(2 * WAIT_MS);
  let mesh: Mesh;
  let session: Session;
  before(async () => {
    mesh = await startMesh();
    const helper = readFileSync(join(ROOT, 'clients/python/src/polar_mesh/harness.py'));
    const [first] = await submit('callable', 'python3 /polar/session/harness.py my_agent:solve', [
      ['/polar/session/harness.py', helper],
      ['/polar/session/workspace/my_agent.py', Buffer.from(AGENT)],
    ]);
    session = first as Session;
  });
  after(() => mesh?.[Symbol.asyncDispose]());

  const rollout = () => createServiceClient(RolloutService, mesh.schedulerUrl);

  async function begin(
    taskId: string,
    command: string,
    files: [string, Uint8Array][] = [],
    artifacts = ['/polar/session/artifacts'],
  ): Promise<void> {
    const prepare = files.map(([target, content]) => ({
      step: { case: 'uploadFile' as const, value: { target, content } },
    }));
    const harness = { name: 'shell', command: { command }, artifacts };
    const spec = create(TaskSpecSchema, { taskId, instruction: 'Say it.', harness, runtime: { prepare } });
    await rollout().submitTask({ spec });
  }
  async function submit(...[taskId, ...more]: Parameters<typeof begin>): Promise<Session[]> {
    await begin(taskId, ...more);
    return await waitForEnd(rollout(), taskId, WAIT_MS);
  }
  const logs = (...args: string[]) => polar(['logs', session.sessionId, '-c', mesh.topologyFile, ...args]);

  it('has a Python callable run, with its exit code and its model call', () => {
    expect(session.outcome, session.failure?.message).to.equal(Outcome.HARNESS_ERROR);
    expect(session.failure?.message).to.contain('exit code 5');
    expect(session.stats?.calls).to.equal(1);
  });

  it('shows what the harness wrote', async () => {
    expect(await logs()).to.deep.equal({ code: 0, stdout: 'asked Say it.\n', stderr: '' });
    expect(await logs('--stderr', '--attempt', '1')).to.include({ code: 0, stdout: 'a warning\n' });
    const told = { attempt: 1, running: false, stream: 'stdout', text: 'asked Say it.\n', exit_code: 5 };
    expect(JSON.parse((await logs('--json')).stdout)).to.include(told);
    const none = await logs('--attempt', '2');
    expect(none.code).to.equal(1);
    expect(none.stderr).to.contain(`NOT_FOUND: session ${session.sessionId} has no attempt 2`);
  });

  it('asks nothing but the public port of the node, which may be on another machine', async () => {
    const topology = parse(readFileSync(mesh.topologyFile, 'utf8'));
    const [node] = topology.gateway.nodes;
    const elsewhere = { ...node, public_url: mesh.proxyUrl, port: 1, harness_executor_port: 2 };
    const file = join(mesh.folder, 'elsewhere.yaml');
    writeFileSync(file, stringify({ ...topology, gateway: { nodes: [elsewhere] } }));
    const ask = (...args: string[]) => polar(['logs', session.sessionId, '-c', file, ...args]);
    expect(await ask()).to.deep.equal({ code: 0, stdout: 'asked Say it.\n', stderr: '' });
    expect(
      (await ask('--file', '/polar/session/artifacts/reply.json', '--node-url', mesh.proxyUrl)).stdout,
    ).to.contain('"role"');
    const none = await ask('--file', 'other.json');
    expect(none.stderr).to.contain('NOT_FOUND').and.contain('other.json');
  });

  it('tells of standard error where standard output is empty', async () => {
    const [ended] = await submit('complains', 'echo oh no >&2; exit 127', [], []);
    const ask = (...args: string[]) =>
      polar(['logs', ended?.sessionId ?? '', '-c', mesh.topologyFile, ...args]);
    const hint = 'standard output is empty; --stderr shows 6 bytes of standard error\n';
    expect(await ask()).to.deep.equal({ code: 0, stdout: '', stderr: hint });
    expect(await ask('--follow')).to.deep.equal({ code: 0, stdout: '', stderr: hint });
    expect(await ask('--stderr')).to.deep.equal({ code: 0, stdout: 'oh no\n', stderr: '' });
    expect((await ask('--json')).stderr).to.equal('');
  });

  it('lists the files that were kept, and writes one', async () => {
    const path = '/polar/session/artifacts/reply.json';
    const { stdout } = await logs('--files', '--json');
    const [file] = JSON.parse(stdout).files;
    expect(file).to.include({ path, transcript: false });
    const written = await logs('--file', path);
    expect(Buffer.byteLength(written.stdout)).to.equal(file.size_bytes);
    expect(JSON.parse(written.stdout).role).to.equal('assistant');
  });

  it('writes a file by its name in the task, and tells of those that are not there', async () => {
    const [ended] = await submit(
      'named',
      'echo found > report.md',
      [],
      ['report.md', 'reprot.md', '/nothere'],
    );
    const ask = (...args: string[]) =>
      polar(['logs', ended?.sessionId ?? '', '-c', mesh.topologyFile, ...args]);
    expect((await ask('--file', 'report.md')).stdout).to.equal('found\n');
    const { files, problems } = JSON.parse((await ask('--files', '--json')).stdout);
    expect(files).to.have.length(1);
    expect(problems).to.deep.equal([
      '/polar/session/workspace/reprot.md: no file is there',
      '/nothere: no file is there',
    ]);
  });

  it('says of a session that it kept no files', async () => {
    const [ended] = await submit('without', 'true', [], []);
    const told = await polar(['logs', ended?.sessionId ?? '', '-c', mesh.topologyFile, '--files']);
    expect(told.code).to.equal(1);
    expect(told.stderr).to.contain(`this node kept no files of session ${ended?.sessionId}, of any attempt`);
  });

  it('has the transcript of a harness, and shows that its skills were there', async () => {
    const skill = '/polar/session/.codex/skills/juggling/SKILL.md';
    const spec = create(TaskSpecSchema, {
      ...{ taskId: 'skilled', instruction: 'Say it.' },
      harness: {
        name: 'codex',
        skills: [{ target: 'juggling/SKILL.md', content: Buffer.from(SKILL) }],
        artifacts: [skill],
      },
    });
    await rollout().submitTask({ spec });
    const [ended] = await waitForEnd(rollout(), 'skilled', 2 * WAIT_MS);
    expect(ended?.outcome, ended?.failure?.message).to.equal(Outcome.COMPLETED);
    const ask = (...args: string[]) =>
      polar(['logs', ended?.sessionId ?? '', '-c', mesh.topologyFile, ...args]);
    const { stdout } = await ask('--files');
    expect(stdout).to.match(/^\/polar\/session\/\.codex\/sessions\/\S+\.jsonl +\d+ {2}transcript$/m);
    expect((await ask('--file', skill)).stdout).to.equal(SKILL);
  });

  it('does not wait for a session that has ended without any output', async () => {
    const broken = { prepare: [{ step: { case: 'exec' as const, value: { command: 'false' } } }] };
    const harness = { name: 'shell', command: { command: 'true' } };
    const spec = create(TaskSpecSchema, { taskId: 'broken', instruction: 'x', harness, runtime: broken });
    await rollout().submitTask({ spec });
    const [ended] = await waitForEnd(rollout(), 'broken', WAIT_MS);
    expect(ended?.outcome).to.equal(Outcome.TASK_ERROR);
    const told = await polar(['logs', ended?.sessionId ?? '', '--follow', '-c', mesh.topologyFile]);
    expect(told.code).to.equal(1);
    expect(told.stderr).to.contain('NOT_FOUND: this node has no output of session');
  });

  it('follows one that waits for a node', async () => {
    const { nodes } = await rollout().listNodes({});
    const nodeId = nodes[0]?.nodeId ?? '';
    await rollout().drainNode({ nodeId });
    await begin('queued', 'echo now');
    const { sessions } = await rollout().listSessions({ taskId: 'queued' });
    const args = ['logs', sessions[0]?.sessionId ?? '', '-c', mesh.topologyFile];
    const now = await polar(args);
    expect(now.stderr).to.contain('it has not run yet (--follow waits)');
    const { ended } = startPolar([...args, '--follow']);
    await sleep(1_500);
    await rollout().drainNode({ nodeId, undo: true });
    expect(await ended).to.deep.equal({ code: 0, stdout: 'now\n', stderr: '' });
  });

  it('follows a harness to its end', async () => {
    await begin('slow', 'echo one; sleep 2; echo two; exit 1');
    const { sessions } = await rollout().listSessions({ taskId: 'slow' });
    await eventually('it was dispatched', async () => {
      const asked = await rollout().getSession({ sessionId: sessions[0]?.sessionId ?? '' });
      return (asked.session?.attempts.length ?? 0) > 0;
    });
    const { sessionId } = sessions[0] as Session;
    const { ended } = startPolar(['logs', sessionId, '--follow', '-c', mesh.topologyFile]);
    expect(await ended).to.deep.equal({ code: 0, stdout: 'one\ntwo\n', stderr: '' });
  });
});
