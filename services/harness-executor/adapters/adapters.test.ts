import { execFileSync } from 'node:child_process';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { ExecStepSchema, McpServerSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';
import { COMMAND_LINE_BYTES_MAX } from '../../common/limits.ts';
import { HARNESSES, type HarnessName, MCP_TRANSPORTS, TAKES_SKILLS } from '../../common/specs/catalogue.ts';
import type { HarnessContext } from './adapter.ts';
import { ADAPTERS, adapterOf } from './index.ts';

const context: HarnessContext = {
  instruction: "@fix -the 'thing'",
  modelName: 'org/model:7b',
  settings: {},
  step: undefined,
  openaiUrl: 'http://127.0.0.1:4141/s/secret/v1',
  sessionUrl: 'http://127.0.0.1:4141/s/secret',
  mcpServers: [],
  capability: 'secret',
  python: '/usr/bin/python3',
};
const step = (command: string, cwd = ''): HarnessContext => ({
  ...context,
  step: create(ExecStepSchema, { command, cwd, env: { A: '1' } }),
});

describe('adapters', () => {
  it('are there for every name of the catalogue, and for no other', () => {
    for (const name of HARNESSES) expect(adapterOf(name).name).to.equal(name);
    expect(() => adapterOf('none')).to.throw(PolarError, 'there are shell, pi');
  });

  it('pin what they install', () => {
    for (const { install, version } of Object.values(ADAPTERS)) {
      expect(install?.version ?? '').to.equal(version);
      if (install !== undefined) expect(version).to.match(/^\d+\.\d+\.\d+$/);
    }
  });
});

/** The adapters of programs. */
const PROGRAMS = Object.values(ADAPTERS).filter(({ name }) => name !== 'shell');

for (const adapter of PROGRAMS) {
  describe(`${adapter.name} adapter`, () => {
    const everything = (given: HarnessContext): string =>
      JSON.stringify([adapter.command(given), adapter.files(given)]);

    it('keeps what is its own beside the workspace, in one folder', () => {
      const own = [...adapter.files(context).map(({ path }) => path), ...adapter.transcripts];
      const folders = own.map((path) => /^\/polar\/session\/(\.[\w-]+)\//.exec(path)?.[1]);
      expect(new Set(folders).size).to.equal(own.length === 0 ? 0 : 1);
      expect(folders).to.not.include(undefined);
    });

    it('is told the endpoint, the credential, the model and the instruction', () => {
      const told = everything(context);
      expect(told).to.contain('http://127.0.0.1:4141/s/secret').and.contain('org/model:7b');
      const inFile = adapter.command(context).argv.includes('/polar/session/instruction.md');
      if (!inFile) expect(told).to.contain(JSON.stringify(context.instruction).slice(1, -1));
    });

    it('does not take an instruction for an option', () => {
      expect(adapter.command({ ...context, instruction: '--help' }).argv).to.not.include('--help');
    });

    it('asks for some model where the task names none', () => {
      expect(everything({ ...context, modelName: '' })).to.contain('policy');
    });

    it('refuses a setting that it does not know', () => {
      const wrong = { ...context, settings: { nonsense: 1 } };
      expect(() => everything(wrong)).to.throw(PolarError, 'nonsense: unknown key');
    });

    it('takes skills where the catalogue says so', () => {
      expect(adapter.skillsDir !== undefined).to.equal(TAKES_SKILLS.some((name) => name === adapter.name));
    });

    it('takes MCP servers over what the catalogue says', () => {
      const before = everything(context);
      for (const transport of ['stdio', 'sse', 'streamable_http'] as const) {
        const own = transport === 'stdio' ? { command: 'serve', args: ['a"b'] } : { url: 'http://x/mcp' };
        const server = create(McpServerSchema, { name: 'probe', transport, ...own });
        const takes = MCP_TRANSPORTS[adapter.name as HarnessName].includes(transport);
        if (takes) expect(everything({ ...context, mcpServers: [server] })).to.not.equal(before);
      }
    });

    it('gives MCP servers time to start on a busy machine', () => {
      const transports = MCP_TRANSPORTS[adapter.name as HarnessName];
      // Gemini CLI waits for 10 min by itself.
      if (transports.length === 0 || adapter.name === 'gemini_cli') return;
      const mcpServers = transports.map((transport) =>
        create(McpServerSchema, { name: transport, transport }),
      );
      expect(everything({ ...context, mcpServers })).to.match(/\b120(000)?\b/);
    });
  });
}

/** A setting of a task, and what must stand in files or command then. */
const SETTINGS: readonly (readonly [HarnessName, Record<string, unknown>, RegExp])[] = [
  ['claude_code', { max_turns: 3 }, /"--max-turns","3"/],
  ['claude_code', { reasoning_effort: 'low' }, /"--effort","low"/],
  ['claude_code', { allowed_tools: ['Bash', 'Edit'] }, /"dontAsk",.*"--allowed-tools","Bash,Edit"/],
  ['claude_code', { max_thinking_tokens: 0 }, /"MAX_THINKING_TOKENS":"0"/],
  ['codex', { reasoning_effort: 'high' }, /model_reasoning_effort = \\"high\\"/],
  ['codex', { multi_agent: true }, /multi_agent = true/],
  ['gemini_cli', { max_turns: 4 }, /maxSessionTurns\\":4/],
  ['qwen_code', { max_turns: 5 }, /"--max-session-turns","5"/],
  ['opencode', { opencode_config: { share: 'disabled', permission: { bash: 'deny' } } }, /deny.*disabled/],
  ['mini_swe_agent', { step_limit: 9, model_kwargs: { top_p: 1 } }, /step_limit\\":9.*top_p/],
  ['openclaw', { thinking: 'low' }, /"--thinking","low"/],
  ['hermes', { max_turns: 7 }, /"--max-turns","7"/],
];
for (const [name, settings, wanted] of SETTINGS) {
  it(`${name} takes ${Object.keys(settings)}`, () => {
    const given = { ...context, settings: settings as HarnessContext['settings'] };
    const made = JSON.stringify([ADAPTERS[name].command(given), ADAPTERS[name].files(given)]);
    expect(made).to.match(wanted);
  });
}

describe('opencode adapter', () => {
  it('lays the given configuration over its own, and keeps the rest', () => {
    const settings = { opencode_config: { permission: { bash: 'deny' }, provider: { other: {} } } };
    const config = JSON.parse(ADAPTERS.opencode.files({ ...context, settings })[0]!.content);
    expect(config.permission).to.deep.equal({ '*': 'allow', bash: 'deny' });
    expect(Object.keys(config.provider)).to.deep.equal(['polar', 'other']);
  });
});

describe('gemini_cli adapter', () => {
  it('gives a name that starts with a dash as the name of a model', () => {
    const { argv } = ADAPTERS.gemini_cli.command({ ...context, modelName: '--help' });
    expect(argv).to.include('--model=--help').and.not.to.include('--help');
  });
});

describe('codex adapter', () => {
  it('waits for MCP servers: one that is not required is left out where it has not started in a second', () => {
    const stdio = create(McpServerSchema, { name: 'a', transport: 'stdio', command: 'serve' });
    const remote = create(McpServerSchema, { name: 'b', transport: 'streamable_http', url: 'http://b' });
    const [file] = ADAPTERS.codex.files({ ...context, mcpServers: [stdio, remote] });
    const tables = file?.content.split('[mcp_servers.').slice(1) ?? [];
    expect(tables.length).to.equal(2);
    for (const table of tables) expect(table).to.match(/^required = true$/m);
  });
});

describe('mini_swe_agent adapter', () => {
  it('writes as YAML an instruction with characters that YAML does not print', () => {
    const instruction = 'it\u00e2\u0080\u0099s \u007f \u0085 \u2028 \ufeff \uffff \u{1f600}';
    const [file] = ADAPTERS.mini_swe_agent.files({ ...context, instruction });
    expect(file?.content).to.match(
      /^[\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]+$/u,
    );
    expect(JSON.parse(file?.content ?? '').run.task).to.equal(instruction);
  });
});

describe('hermes adapter', () => {
  it('says that an instruction is too long for an argument', () => {
    const long = { ...context, instruction: 'x'.repeat(128 * 1024) };
    expect(() => ADAPTERS.hermes.command(long)).to.throw(PolarError, 'instruction: hermes takes one');
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
