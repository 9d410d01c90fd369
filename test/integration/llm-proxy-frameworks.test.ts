// Bodies of agent frameworks as they were seen, turn by turn: what a framework writes on the model's own replies when it sends
// them back does not part the conversation.
import { expect } from 'chai';
import { BASH, startTestEngine } from '../../examples/scripted-engine/testing.ts';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { TestProxy } from '../support/llm-proxy.ts';

const SCRIPT = `
when: count
variants:
  - name: counts
    steps:
      - text: I will look first.
        calls: [{ shell: ls -la }, { shell: ls b }]
      - calls: [{ shell: cat a b }]
      - think: The list has two lines.
        text: Two files, it seems.
        calls: [{ shell: cat a }]
      - text: There are two.
`;
const TURNS = 4;

interface Reply {
  readonly content: string | null;
  readonly tool_calls?: { readonly id: string; readonly function: { name: string; arguments: string } }[];
}

/** As LangChain's ChatOpenAI sends back what an agent with a name was told: without reasoning, arguments written again. */
const byLangChain = ({ content, tool_calls: calls = [] }: Reply): object => ({
  content,
  name: 'weatherman',
  role: 'assistant',
  ...(calls.length > 0 && {
    tool_calls: calls.map(({ id, function: { name, arguments: args } }) => ({
      type: 'function',
      id,
      function: { name, arguments: JSON.stringify(JSON.parse(args)) },
    })),
  }),
});

/** As Semantic Kernel does: with calls, without the text beside them; arguments as they came. */
const bySemanticKernel = ({ content, tool_calls: calls }: Reply): object => ({
  role: 'assistant',
  ...(calls === undefined ? { content } : { tool_calls: calls }),
  name: 'ag',
});

/** What was recorded of a session that counts, and is then asked again. */
async function played(
  kind: 'vllm' | 'sglang',
  sentBack: (reply: Reply) => object,
  node: Record<string, unknown> = {},
): Promise<Completion[]> {
  const switches = { split_samples: true } as const;
  await using engine = await startTestEngine({ dialect: kind, script: SCRIPT, switches });
  await using proxy = await TestProxy.start({
    engineUrl: engine.url,
    kind,
    inference: { mode: 'token' },
    node,
  });
  const capability = await proxy.admit('s');
  const few = { role: 'assistant', content: 'I am at your service.', name: 'butler' };
  const messages: object[] = [{ content: 'Be useful.', role: 'system' }, few];
  messages.push({ content: 'count the files', role: 'user' });
  for (let turn = 0; turn < TURNS; turn++) {
    const asked = await proxy.chat(capability, { messages, model: 'policy', stream: false, tools: [BASH] });
    const { choices } = (await asked.json()) as { choices: [{ message: Reply }] };
    const [{ message }] = choices;
    messages.push(sentBack(message));
    for (const { id } of message.tool_calls ?? [])
      messages.push({ content: 'a\nb', role: 'tool', tool_call_id: id });
  }
  return await proxy.records('s');
}

for (const kind of ['vllm', 'sglang'] as const) {
  describe(`an agent that writes its name on the model’s own replies, in token mode at ${kind}`, () => {
    it('goes on by ids, also where LangChain drops the thinking of one', async () => {
      const records = await played(kind, byLangChain);
      expect(records.map(({ mode }) => mode)).to.deep.equal(['text', 'token', 'token', 'token']);
      expect(records.map(({ drift }) => drift)).to.deep.equal(['', '', '', 'reasoning_dropped']);
      expect(records.map(({ baseIndex }) => baseIndex)).to.deep.equal([-1, 0, 1, 2]);
      expect(records[1]?.normalisedBy).to.deep.equal(['tool-arguments', 'reply-names']);
      // What the model has not said keeps its name.
      expect(Object.values(records[0]?.messageBodies ?? {}).join()).to.include('"name":"butler"');
      expect(Object.values(records[1]?.messageBodies ?? {}).join()).not.to.include('weatherman');
    });

    it('is told by the right word where Semantic Kernel drops the text beside calls', async () => {
      const records = await played(kind, bySemanticKernel);
      expect(records.map(({ drift }) => drift)).to.deep.equal(['', 'history_edited', '', 'history_edited']);
    });

    it('is edited where the rule is switched off', async () => {
      const records = await played(kind, byLangChain, { normalise: ['tool-arguments'] });
      expect(records.slice(1).map(({ drift }) => drift)).to.include('history_edited');
    });
  });
}
