// What harnesses get to see of replies in token mode, whichever engine makes them.
import { expect } from 'chai';
import { BASH, startTestEngine } from '../../examples/scripted-engine/testing.ts';
import { AgentSession } from '../support/agent-session.ts';
import { TestProxy } from '../support/llm-proxy.ts';

const SCRIPT = `
when: count
variants:
  - name: counts
    steps:
      - { text: Let me look., calls: [{ shell: ls }] }
      - { text: 'Again, STOP here.', calls: [{ shell: ls }, { shell: cat x }] }
      - { text: That is all. }
`;

async function staged(kind: 'vllm' | 'sglang' | 'llamacpp') {
  const engine = await startTestEngine({ dialect: kind, script: SCRIPT });
  const proxy = await TestProxy.start({ engineUrl: engine.url, kind, inference: { mode: 'token' } });
  return {
    proxy,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    },
  };
}

for (const kind of ['vllm', 'sglang', 'llamacpp'] as const) {
  describe(`replies of token mode at ${kind}`, () => {
    it('have ids of their own, by which harnesses tell them apart', async () => {
      await using stage = await staged(kind);
      const capability = await stage.proxy.admit('s');
      const options = { stream: false, tools: [BASH] };
      const agent = new AgentSession(stage.proxy, capability, 'count the files', options);
      const ids = new Set<string>();
      for (let turn = 0; turn < 3; turn++) {
        await agent.work(1);
        const chat = await stage.proxy.chat(capability, { messages: agent.messages, tools: [BASH] });
        const { id, created } = (await chat.json()) as { id: string; created: number };
        expect(created).to.be.above(1e9);
        ids.add(id);
      }
      expect(ids).to.have.property('size', 3);
    });
  });
}
