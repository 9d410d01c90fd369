// Adapters of a folder of the operator's, what is kept of a sandbox, and what is told of a harness at work.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type AttemptRef, type Ran, RunWorkSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { SANDBOX_FILE_BYTES_MAX } from '../../services/common/limits.ts';
import { eventually } from '../support/eventually.ts';
import { newRef, startNode, type TestNode } from '../support/node.ts';
import { startStandInProxy } from '../support/stand-in-proxy.ts';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

describe('plug-ins, artifacts and logs of the harness executor', () => {
  let node: TestNode;
  let folder: string;
  let plugins: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-plugins-'));
    plugins = join(folder, 'plugins');
    mkdirSync(plugins);
    node = await startNode(['runtime-prewarm', 'harness-executor'], { plugins_dir: plugins });
  });
  after(async () => {
    await node[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const harnesses = () =>
    createServiceClient(HarnessService, `http://127.0.0.1:${node.ports['harness-executor']}`);
  const begin = async (harness: object): Promise<AttemptRef> => {
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    const value = create(RunWorkSchema, { runtimeId, instruction: 'Do it.', timeoutMs: 20_000n, harness });
    await node.work(ref, { case: 'run', value });
    return ref;
  };
  const run = async (harness: object): Promise<{ ref: AttemptRef; ran: Ran }> => {
    await using _ = await startStandInProxy({ node });
    const ref = await begin(harness);
    const { kind } = await node.fact(ref);
    if (kind.case === 'ran') return { ref, ran: kind.value };
    throw new Error(kind.case === 'failed' ? kind.value.failure?.message : kind.case);
  };
  const shell = (command: string, artifacts: string[] = []): object => ({
    ...{ name: 'shell', artifacts },
    command: { command },
  });
  const failureOf = async (importPath: string): Promise<string> => {
    const { kind } = await node.fact(await begin({ importPath }));
    expect(kind.case).to.equal('failed');
    const failure = kind.case === 'failed' ? kind.value.failure : undefined;
    expect(failure).to.include({ reason: 'HARNESS_PLUGIN_INVALID', infrastructure: false });
    return failure?.message ?? '';
  };
  const plugin = (name: string, code: string): void => writeFileSync(join(plugins, name), code);

  it('runs a harness whose adapter is a plug-in, and keeps its transcript', async () => {
    mkdirSync(join(plugins, 'team'));
    plugin(
      'team/echo.mjs',
      `export const adapter = {
        name: 'echo',
        version: '1.0.0',
        transcripts: ['/polar/session/.echo'],
        skillsDir: '/polar/session/.echo/skills',
        files: ({ settings }) => [{ path: '/polar/session/.echo/greeting', content: settings.greeting }],
        command: ({ instruction }) => ({
          argv: ['sh', '-c', 'cat /polar/session/.echo/greeting /polar/session/.echo/skills/a/SKILL.md -; exit 4'],
          env: {},
          stdin: instruction,
        }),
      };`,
    );
    const skills = [{ target: 'a/SKILL.md', content: Buffer.from('skill ') }];
    const harness = { importPath: 'team/echo.mjs', settings: { greeting: 'Hello. ' }, skills };
    const { ref, ran } = await run(harness);
    expect([ran.outcome, ran.exitCode]).to.deep.equal([Outcome.HARNESS_ERROR, 4]);
    const { sessionId } = ref;
    const log = await harnesses().getSessionLogs({ sessionId });
    expect([text(log.stdout), log.running]).to.deep.equal(['Hello. skill Do it.', false]);
    const { artifacts } = await harnesses().listSessionArtifacts({ sessionId });
    expect(artifacts.map(({ path, transcript }) => [path, transcript])).to.have.deep.members([
      ['/polar/session/.echo/greeting', true],
      ['/polar/session/.echo/skills/a/SKILL.md', true],
    ]);
  });

  it('says what is wrong with a plug-in', async () => {
    plugin('broken.mjs', 'export const adapter = {');
    plugin('bare.mjs', 'export const other = 1;');
    plugin('shape.mjs', "export const adapter = { name: 'pi', transcripts: ['x'] };");
    symlinkSync('/etc/passwd', join(plugins, 'link.mjs'));
    expect(await failureOf('none.mjs')).to.contain('not there');
    expect(await failureOf('broken.mjs')).to.contain('cannot be loaded');
    expect(await failureOf('bare.mjs')).to.contain('exports no `adapter`');
    expect(await failureOf('link.mjs')).to.contain('outside of plugins_dir');
    const shape = await failureOf('shape.mjs');
    for (const field of ['name: is the name', 'transcripts[0]', 'command']) expect(shape).to.contain(field);
  });

  it('keeps what a task names, and says what it could not keep', async () => {
    const make = [
      'mkdir -p out/deep',
      'echo one > out/one',
      'echo two > "out/deep/t w o"',
      'ln -s /etc/passwd out/link',
      `head -c ${SANDBOX_FILE_BYTES_MAX + 1} /dev/zero > out/large`,
      'echo report > $ARTIFACTS_DIR/report',
    ];
    const command = shell(make.join(' && '), ['out', '/polar/session/artifacts', 'nothing']);
    const { ref } = await run(command);
    const asked = { sessionId: ref.sessionId, attempt: 1 };
    const { artifacts, problems } = await harnesses().listSessionArtifacts(asked);
    const workspace = '/polar/session/workspace';
    expect(artifacts.map(({ path }) => path)).to.have.members([
      `${workspace}/out/one`,
      `${workspace}/out/deep/t w o`,
      '/polar/session/artifacts/report',
    ]);
    expect(problems).to.have.length(2);
    expect(problems.find((one) => one.includes('out/large'))).to.be.a('string');
    expect(problems).to.include(`${workspace}/nothing: no file is there`);
    const { content } = await harnesses().getSessionArtifact({
      ...asked,
      path: `${workspace}/out/deep/t w o`,
    });
    expect(text(content)).to.equal('two\n');
  });

  it('keeps nothing, and starts nothing, where nothing is to be kept', async () => {
    const { ref } = await run(shell('echo x > $ARTIFACTS_DIR/x'));
    const error = await harnesses()
      .listSessionArtifacts({ sessionId: ref.sessionId })
      .catch((thrown) => thrown);
    expect(error.reason).to.equal('NOT_FOUND');
  });

  it('tells of a harness at work what is new', async () => {
    await using _ = await startStandInProxy({ node });
    const ref = await begin(shell('echo one; sleep 2; echo two'));
    const read = (stdoutOffset = 0n) =>
      harnesses().getSessionLogs({ sessionId: ref.sessionId, stdoutOffset });
    await eventually('it has begun', async () => (await read().catch(() => undefined))?.stdoutSize === 4n);
    const first = await read();
    expect([text(first.stdout), first.running]).to.deep.equal(['one\n', true]);
    expect(text((await read(first.stdoutSize)).stdout)).to.equal('');
    await node.fact(ref);
    const last = await read(first.stdoutSize);
    expect([text(last.stdout), last.stdoutSize, last.running]).to.deep.equal(['two\n', 8n, false]);
  });
});
