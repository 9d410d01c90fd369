// What a judge reads: the session's conversations as texts, and which calls each of them speaks for.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { Conversations } from '../../common/conversations.ts';

export interface Judged {
  /** The calls that share its score; the last one ends it. */
  readonly callIds: readonly string[];
  /** One message after the other; what is above `charsMax` characters is left out of the middle, and not made. */
  readonly text: (charsMax: number) => string;
}

/**
 * The conversations of the policy, in the order in which their last calls began: each ends with a call that no other one
 * goes on from. A call that several go on from belongs to the last of them. Calls that were never answered, calls beside the conversations
 * and those of frozen models are not judged.
 */
export function conversationsOf(records: readonly Completion[]): Judged[] {
  const conversations = new Conversations();
  for (const record of records) {
    conversations.add({
      baseIndex: record.baseMessageCount > 0 ? record.baseIndex : -1,
      baseCount: record.baseMessageCount,
      fresh: record.messageDigests,
      reply: record.replyDigest,
    });
  }
  const bodies = new Map(records.flatMap(({ messageBodies }) => Object.entries(messageBodies)));
  return lines(records).map((line) => {
    const end = line.at(-1)?.index ?? 0;
    const text = (charsMax: number): string => {
      const digests = [...conversations.messagesOf(end), conversations.replyOf(end)];
      return withoutMiddle(digests, (digest) => messageText(bodies.get(digest)), charsMax);
    };
    return { callIds: line.map(({ callId }) => callId), text };
  });
}

/** The calls of each conversation, from its first; each call is in one. */
function lines(records: readonly Completion[]): Completion[][] {
  const judged = records.filter(isJudged);
  const goneOnFrom = new Set(
    judged.flatMap(({ baseIndex, baseMessageCount }) => (baseMessageCount > 0 ? [baseIndex] : [])),
  );
  const ends = judged.filter(({ index }) => !goneOnFrom.has(index)).sort(byStart);
  const taken = new Set<number>();
  const lineOf = (end: Completion): Completion[] => {
    const line: Completion[] = [];
    for (let at: Completion | undefined = end; at !== undefined && !taken.has(at.index); ) {
      taken.add(at.index);
      if (isJudged(at)) line.unshift(at);
      at = at.baseMessageCount > 0 ? records[at.baseIndex] : undefined;
    }
    return line;
  };
  return ends.reverse().map(lineOf).reverse();
}

const isJudged = ({ trainable, role, replyDigest }: Completion): boolean =>
  trainable && role !== 'side' && replyDigest !== '';

const byStart = (a: Completion, b: Completion): number => Number(a.startSeq - b.startSeq);

interface Message {
  readonly role?: unknown;
  readonly content?: unknown;
  readonly reasoning_content?: unknown;
  readonly tool_calls?: unknown;
}

/** A message of OpenAI's chat API. What is no text is named by its type. */
function messageText(body: string | undefined): string {
  const message = (body === undefined ? {} : JSON.parse(body)) as Message;
  const parts = [
    message.reasoning_content,
    ...contentParts(message.content),
    message.tool_calls === undefined || message.tool_calls === null ? '' : JSON.stringify(message.tool_calls),
  ];
  const said = parts.filter((part) => typeof part === 'string' && part !== '');
  return [`[${String(message.role ?? 'unknown')}]`, ...said].join('\n');
}

function contentParts(content: unknown): unknown[] {
  if (!Array.isArray(content)) return [content];
  return content.map((part: { type?: unknown; text?: unknown } | null) =>
    typeof part?.text === 'string' ? part.text : `[${String(part?.type ?? 'part')}]`,
  );
}

const BETWEEN = '\n\n';
const LEFT_OUT = '\n[… what was between is left out …]\n';

/**
 * At most `charsMax` of the texts of all items: their beginning and their end, with a line between them where they have
 * more. Texts that do not show are not made: all of them together may be larger than memory. Half a character is U+FFFD, as a
 * server that reads JSON strictly refuses it.
 */
export function withoutMiddle<T>(items: readonly T[], textOf: (item: T) => string, charsMax: number): string {
  let front = '';
  for (const [i, item] of items.entries()) {
    front += `${i > 0 ? BETWEEN : ''}${textOf(item)}`;
    if (front.length > charsMax) break;
  }
  if (front.length <= charsMax) return front.toWellFormed();
  const kept = Math.max(0, charsMax - LEFT_OUT.length);
  const head = Math.ceil(kept / 2);
  const tail = kept - head;
  let back = '';
  for (let i = items.length - 1; i >= 0 && back.length < tail; i--) {
    back = `${i > 0 ? BETWEEN : ''}${textOf(items[i] as T)}${back}`;
  }
  return `${front.slice(0, head)}${LEFT_OUT}${tail > 0 ? back.slice(-tail) : ''}`.toWellFormed();
}
