// The llm-proxy in front of the scripted engine: a real tokenizer and chat template, so that histories drift as they do.
import { expect } from 'chai';
import type { SomeSwitches } from '../../examples/scripted-engine/switches.ts';
import { BASH, type Body, chat, startTestEngine, user } from '../../examples/scripted-engine/testing.ts';
import { unpackFloats, unpackIds } from '../../services/common/columns.ts';
import { promptsOf, readEvents, TestProxy } from '../support/llm-proxy.ts';

const SCRIPT = `
when: count
variants:
  - name: counts
    steps:
      - text: I will look first.
        calls: [{ shell: ls -la }]
      - text: Two files, it seems.
        think: The list has two lines.
        calls: [{ shell: cat a b }]
      - text: There are two.
`;

interface Message {
  role: string;
  content: string | null;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
}
type Delta = Partial<Message> & {
  tool_calls?: ({ index: number } & NonNullable<Message['tool_calls']>[number])[];
};

/** The assistant message of a reply, put together as a client does. */
async function messageIn(answer: Response, stream: boolean): Promise<Message> {
  if (!stream) return ((await answer.json()) as { choices: [{ message: Message }] }).choices[0].message;
  const message: Message = { role: 'assistant', content: null };
  for (const data of (await readEvents(answer)).events.slice(0, -1)) {
    const [choice] = (JSON.parse(data) as { choices: { delta: Delta }[] }).choices;
    for (const [key, value] of Object.entries(choice?.delta ?? {})) {
      if (key === 'tool_calls') addCalls(message, value as NonNullable<Delta['tool_calls']>);
      else if (typeof value === 'string' && key !== 'role') {
        const known = (message as unknown as Record<string, string | null>)[key] ?? '';
        Object.assign(message, { [key]: known + value });
      }
    }
  }
  return message;
}

function addCalls(message: Message, deltas: NonNullable<Delta['tool_calls']>): void {
  message.tool_calls ??= [];
  for (const { index, ...delta } of deltas) {
    const known = message.tool_calls[index];
    if (known === undefined) message.tool_calls[index] = { ...delta, function: { ...delta.function } };
    else known.function.arguments += delta.function.arguments;
  }
}

for (const dialect of ['vllm', 'sglang'] as const) {
  for (const stream of [false, true]) {
    describe(`llm-proxy and the scripted engine as ${dialect}, ${stream ? 'streamed' : 'whole'}`, () => {
      const play = async (session: string, switches: SomeSwitches) => {
        await using engine = await startTestEngine({ dialect, script: SCRIPT, switches });
        await using proxy = await TestProxy.start({ engineUrl: engine.url, kind: dialect });
        const capability = await proxy.admit(session);
        const messages: Body[] = [user('count the files') as unknown as Body];
        const served: number[] = [];
        for (let turn = 0; turn < 3; turn++) {
          const asked = { model: 'policy', messages, tools: [BASH], stream };
          const direct = await chat(engine.url, { ...asked, model: 'scripted-qwen3', stream: false });
          served.push(direct.usage.prompt_tokens);
          const said = await messageIn(await proxy.chat(capability, asked), stream);
          messages.push(said as unknown as Body);
          for (const call of said.tool_calls ?? []) {
            messages.push({ role: 'tool', tool_call_id: call.id, content: 'a\nb' });
          }
        }
        expect(messages).to.have.length(6);
        const records = await proxy.records(session);
        expect(records).to.have.length(3);
        expect(promptsOf(records).map((prompt) => prompt.length)).to.deep.equal(served);
        return records;
      };

      it('records each turn as a continuation of the one before it', async () => {
        const records = await play('loop-0', { thinking_history: 'kept' });
        for (const [i, record] of records.entries()) {
          const sampled = unpackIds(record.sampledIds).length;
          expect(record.usage?.completionTokens).to.equal(sampled);
          expect(unpackFloats(record.logprobs!)).to.have.length(sampled);
          if (i === 0) continue;
          const before = records[i - 1]!;
          expect(record.baseIndex).to.equal(i - 1);
          expect(record.baseLength).to.equal(before.promptLength + unpackIds(before.sampledIds).length);
          expect(record.baseMessageCount).to.equal(
            before.baseMessageCount + before.messageDigests.length + 1,
          );
          expect(record.toolsDigest).to.equal(before.toolsDigest);
        }
      });

      it('records the prompt that was served where the history was tokenised otherwise', async () => {
        const records = await play('drift-0', { retokenise_history: true });
        const [first, second] = records;
        const whole = first!.promptLength + unpackIds(first!.sampledIds).length;
        expect(second!.baseLength).to.be.within(first!.promptLength, whole - 1);
        expect(second!.baseMessageCount).to.equal(first!.messageDigests.length + 1);
      });
    });
  }
}
