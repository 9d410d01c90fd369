import { execFileSync } from 'node:child_process';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { ExecStepSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';
import { COMMAND_LINE_BYTES_MAX } from '../../common/limits.ts';
import { HARNESSES } from '../../common/specs/catalogue.ts';
import type { HarnessContext } from './adapter.ts';
import { ADAPTERS, adapterOf } from './index.ts';

const context: HarnessContext = {
  instruction: "@fix -the 'thing'",
  modelName: 'org/model:7b',
  settings: {},
  step: undefined,
  openaiUrl: 'http://127.0.0.1:4141/s/secret/v1',
  capability: 'secret',
};
const step = (command: string, cwd = ''): HarnessContext => ({
  ...context,
  step: create(ExecStepSchema, { command, cwd, env: { A: '1' } }),
});

describe('adapters', () => {
  it('are there for every name of the catalogue, and for no other', () => {
    for (const name of HARNESSES) expect(adapterOf(name).name).to.equal(name);
    expect(() => adapterOf('codex')).to.throw(PolarError, 'there are shell, pi');
  });

  it('pin what they install', () => {
    for (const { install, version } of Object.values(ADAPTERS)) {
      expect(install?.version ?? '').to.equal(version);
      if (install !== undefined) expect(version).to.match(/^\d+\.\d+\.\d+$/);
    }
  });
});

describe('shell adapter', () => {
  it('runs the command with the instruction as one word', () => {
    const { argv, env, cwd } = ADAPTERS.shell.command(step('printf %s {{instruction}}', '/x'));
    expect(execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' })).to.equal(context.instruction);
    expect(env).to.deep.equal({ A: '1' });
    expect(cwd).to.equal('/x');
    expect(ADAPTERS.shell.files(step('true'))).to.deep.equal([]);
  });

  it("stays in the runtime's workdir unless told", () => {
    expect(ADAPTERS.shell.command(step('true'))).not.to.have.property('cwd');
  });

  it('runs from a file what one argument cannot hold', () => {
    const long = step(`true ${'x'.repeat(COMMAND_LINE_BYTES_MAX)}`);
    const [file] = ADAPTERS.shell.files(long);
    expect(ADAPTERS.shell.command(long).argv).to.deep.equal(['sh', file!.path]);
    expect(file!.content).to.equal(long.step!.command);
  });

  it('needs a command', () => {
    expect(() => ADAPTERS.shell.command(context)).to.throw(PolarError, 'needs a command');
  });
});

describe('pi adapter', () => {
  const models = (settings: HarnessContext['settings']) =>
    JSON.parse(ADAPTERS.pi.files({ ...context, settings })[0]!.content).providers.polar;

  it('writes the endpoint of the session, outside the workspace', () => {
    const [file] = ADAPTERS.pi.files(context);
    expect(file!.path).to.match(/^\/polar\/session\/(?!workspace\/)/);
    expect(models({})).to.deep.include({ baseUrl: context.openaiUrl, apiKey: 'secret' });
    const { env } = ADAPTERS.pi.command(context);
    expect(file!.path).to.equal(`${env['PI_CODING_AGENT_DIR']}/models.json`);
  });

  it('takes its settings, and refuses what it does not know', () => {
    expect(models({}).models[0]).to.include({ id: 'org/model:7b', contextWindow: 262_144, maxTokens: 8_192 });
    expect(models({ context_window: 1_000, max_tokens: 10, reasoning: true }).models[0]).to.include({
      contextWindow: 1_000,
      maxTokens: 10,
      reasoning: true,
    });
    expect(() => models({ max_turns: 3 })).to.throw(PolarError, 'max_turns');
  });

  it('gives the instruction on standard input, where nothing in it is an option', () => {
    const { argv, stdin } = ADAPTERS.pi.command(context);
    expect(stdin).to.equal(context.instruction);
    expect(argv).not.to.include(context.instruction);
    expect(argv.join(' ')).to.contain('--model org/model:7b ');
  });

  it('asks for a model where the task names none', () => {
    const none = { ...context, modelName: '' };
    const [file] = ADAPTERS.pi.files(none);
    const { id } = JSON.parse(file!.content).providers.polar.models[0];
    expect(ADAPTERS.pi.command(none).argv).to.include(id);
  });
});
