// A harness for tests that plays a session through the LLM proxy, and what was recorded of it.
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { unpackIds } from '../../services/common/columns.ts';
import { build } from '../../services/reconstructor/domain/build.ts';
import { expand, inOrder } from '../../services/reconstructor/domain/expand.ts';
import { callLine, traceLine } from '../../services/reconstructor/domain/export.ts';
import { breaches } from './laws.ts';
import { readEvents, type TestProxy } from './llm-proxy.ts';

export interface ChatMessage {
  role: string;
  content: string | null;
  reasoning_content?: string;
  tool_call_id?: string;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
}

type CallDelta = { index: number } & NonNullable<ChatMessage['tool_calls']>[number];
type Delta = Omit<Partial<ChatMessage>, 'tool_calls'> & { reasoning?: string; tool_calls?: CallDelta[] };

export interface AgentOptions {
  readonly stream: boolean;
  readonly tools?: readonly object[];
  /** More of each request. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** Keeps the conversation; what it says of it is its own to change. */
export class AgentSession {
  readonly #proxy: TestProxy;
  readonly #capability: string;
  readonly #options: AgentOptions;
  messages: ChatMessage[];

  constructor(proxy: TestProxy, capability: string, first: string, options: AgentOptions) {
    this.#proxy = proxy;
    this.#capability = capability;
    this.#options = options;
    this.messages = [
      { role: 'system', content: 'You are a careful agent.' },
      { role: 'user', content: first },
    ];
  }

  /** Another one that goes on from here. */
  fork(options: Partial<AgentOptions> = {}): AgentSession {
    const forked = new AgentSession(this.#proxy, this.#capability, '', { ...this.#options, ...options });
    forked.messages = structuredClone(this.messages);
    return forked;
  }

  /** One call; its reply joins the conversation. */
  async ask(): Promise<ChatMessage> {
    const { stream, tools, fields } = this.#options;
    const body = { model: 'policy', messages: this.messages, stream, ...(tools && { tools }), ...fields };
    const answer = await this.#proxy.chat(this.#capability, body);
    if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
    const said = stream ? await joined(answer) : await whole(answer);
    this.messages.push(said);
    return said;
  }

  say(content: string): void {
    this.messages.push({ role: 'user', content });
  }

  /** One call after another, each tool call answered, until nothing is asked for. Returns how many calls it made. */
  async work(turnsMax = Number.POSITIVE_INFINITY): Promise<number> {
    for (let turn = 1; ; turn++) {
      const { tool_calls: calls } = await this.ask();
      for (const { id } of calls ?? [])
        this.messages.push({
          role: 'tool',
          tool_call_id: id,
          // Nothing of the id, which is another one at each run.
          content: `a line ${turn} of it\nß 你好`,
        });
      if ((calls ?? []).length === 0 || turn >= turnsMax) return turn;
    }
  }
}

async function whole(answer: Response): Promise<ChatMessage> {
  const body = (await answer.json()) as { choices: [{ message: ChatMessage & { reasoning?: string } }] };
  return body.choices[0].message;
}

async function joined(answer: Response): Promise<ChatMessage> {
  const message: ChatMessage = { role: 'assistant', content: '' };
  const { events, whole } = await readEvents(answer);
  if (!whole) throw new Error('the stream was cut');
  for (const data of events.slice(0, -1)) {
    const [choice] = (JSON.parse(data) as { choices: { delta: Delta }[] }).choices;
    if (choice !== undefined) addDelta(message, choice.delta);
  }
  return message;
}

function addDelta(message: ChatMessage, { content, reasoning, reasoning_content, tool_calls }: Delta): void {
  message.content += content ?? '';
  const thought = reasoning_content ?? reasoning ?? '';
  if (thought !== '') message.reasoning_content = (message.reasoning_content ?? '') + thought;
  for (const { index, ...delta } of tool_calls ?? []) {
    message.tool_calls ??= [];
    const known = message.tool_calls[index];
    if (known === undefined) message.tool_calls[index] = { ...delta, function: { ...delta.function } };
    else known.function.arguments += delta.function.arguments ?? '';
  }
}

/** Whether a record's prompt begins with all ids of an earlier record. */
export function extendsEarlier(
  records: readonly Completion[],
  { baseIndex, baseLength }: Completion,
): boolean {
  const base = records[baseIndex];
  return base !== undefined && baseLength === base.promptLength + unpackIds(base.sampledIds).length;
}

/** What laws.py finds wrong with the records of an attempt and the traces that come of them. */
export function lawsBroken(records: readonly Completion[]): string[] {
  const calls = expand(inOrder(records, records.length));
  const { traces } = build('prefix_merging', calls);
  return breaches([{ calls: calls.map(callLine), traces: traces.map(traceLine) }]).flat();
}
