// What the policy has said to the agent, call by call: no reasoning, no tool calls.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';

export interface Reply {
  readonly callId: string;
  readonly isMain: boolean;
  readonly text: string;
}

/** Those that were delivered, in the order in which their calls began; side calls and frozen models are left out. */
export function repliesOf(records: readonly Completion[]): Reply[] {
  const bodies = new Map(records.flatMap(({ messageBodies }) => Object.entries(messageBodies)));
  return records
    .filter(({ trainable, role, replyDigest }) => trainable && role !== 'side' && replyDigest !== '')
    .toSorted((a, b) => Number(a.startSeq - b.startSeq))
    .map(({ callId, role, replyDigest }) => ({
      callId,
      isMain: role !== 'sub',
      text: saidIn(bodies.get(replyDigest)),
    }));
}

/** The last one of the main conversation that says something; undefined: none does. */
export const finalOf = (replies: readonly Reply[]): Reply | undefined =>
  replies.findLast(({ isMain, text }) => isMain && text.trim() !== '');

/** Of a message of OpenAI's chat API. */
function saidIn(body: string | undefined): string {
  const { content } = (body === undefined ? {} : (JSON.parse(body) ?? {})) as { content?: unknown };
  if (typeof content === 'string') return withoutReasoning(content);
  const parts = Array.isArray(content) ? (content as ({ text?: unknown } | null)[]) : [];
  return withoutReasoning(parts.map((part) => (typeof part?.text === 'string' ? part.text : '')).join(''));
}

const [THINK, THINK_END] = ['<think>', '</think>'];

/** Engines without a parser for reasoning leave it in the text. What does not end is nothing else. */
function withoutReasoning(text: string): string {
  const end = text.lastIndexOf(THINK_END);
  const rest = end < 0 ? text : text.slice(end + THINK_END.length);
  const begin = rest.indexOf(THINK);
  return begin < 0 ? rest : rest.slice(0, begin);
}
