// Token mode: the history of a session is what was served and sampled, whatever an engine would make of its messages.
import { expect } from 'chai';
import type { SomeSwitches } from '../../examples/scripted-engine/switches.ts';
import { BASH, startTestEngine } from '../../examples/scripted-engine/testing.ts';
import { AgentSession, extendsEarlier, lawsBroken } from '../support/agent-session.ts';
import { promptsOf, TestProxy } from '../support/llm-proxy.ts';

const TURNS = 20;
const steps = Array.from({ length: TURNS - 1 }, (_, i) => {
  const think = i % 3 === 0 ? `        think: Step ${i} needs a look at the files and some patience.\n` : '';
  const text = i % 4 === 1 ? '' : `        text: Looking at part ${i} of the unbelievably fragmented listing.\n`;
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

const KINDS = ['vllm', 'sglang'] as const;
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

for (const kind of KINDS) {
  for (const stream of [false, true]) {
    describe(`token mode at ${kind}, ${stream ? 'streamed' : 'whole'}`, () => {
      it('never drifts where text mode does', async () => {
        const switches = { retokenise_history: true };
        for (const mode of ['token', 'text'] as const) {
          await using stage = await staged({ kind, mode, switches });
          const agent = new AgentSession(stage.proxy, await stage.proxy.admit('s'), 'count the files', {
            stream,
            tools: [BASH],
          });
          expect(await agent.work()).to.equal(TURNS);
          const records = await stage.proxy.records('s');
          expect(records).to.have.length(TURNS);
          const drifting = records.filter(({ drift }) => drift !== '');
          if (mode === 'text') expect(drifting.map(({ drift }) => drift)).to.include('retokenised');
          else {
            expect(drifting).to.deep.equal([]);
            expect(records.map((record) => record.mode)).to.deep.equal(['text', ...Array(TURNS - 1).fill('token')]);
            for (const record of records.slice(1)) expect(extendsEarlier(records, record)).to.equal(true);
          }
          expect(lawsBroken(records)).to.deep.equal([]);
        }
      });

      it('sends what text mode sends where the template gives back what was sampled', async () => {
        const prompts: number[][][] = [];
        for (const mode of ['token', 'text'] as const) {
          await using stage = await staged({ kind, mode, inference: { audit_share: 1 } });
          const agent = new AgentSession(stage.proxy, await stage.proxy.admit('s'), 'count the files', {
            stream,
            tools: [BASH],
          });
          await agent.work(6);
          const records = await stage.proxy.records('s');
          expect(records.map(({ drift }) => drift)).to.deep.equal(Array(6).fill(''));
          prompts.push(promptsOf(records));
        }
        expect(prompts[0]).to.deep.equal(prompts[1]);
      });
    });
  }
}
