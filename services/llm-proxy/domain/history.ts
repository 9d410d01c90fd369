// The recorded calls of an attempt as conversations: which of them a request goes on from, and where it does not, why.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { unpackIds } from '../../common/columns.ts';
import type { Conversations } from '../../common/conversations.ts';
import { ConversationTree, type Found } from './conversation-tree.ts';
import { type Drift, driftOf } from './drift.ts';
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';
import { digestMessage } from './messages.ts';
import { settingsKey } from './template-settings.ts';
import { thinkingOf } from './template-sketch.ts';

/** A request as it is compared with what was recorded. */
export interface Conversation {
  readonly messages: readonly { readonly value: JsonValue }[];
  /** Of each message. */
  readonly digests: readonly string[];
  /** Digest of the tool definitions, empty for none. */
  readonly tools: string;
  /** Of the chat template: `settingsKey`. */
  readonly settings: string;
}

/** What is kept of a recorded call. */
export interface Known {
  readonly baseIndex: number;
  readonly baseLength: number;
  /** The call that it goes on from, or one before that, whose prompt the engine made. */
  readonly root: number;
  readonly tools: string;
  readonly settings: string;
  /** Messages that it was sent. */
  readonly messages: number;
  readonly promptLength: number;
  readonly sampledLength: number;
  /** Unset: nothing of the policy was sampled that a call could go on from. */
  readonly lastId: number | undefined;
  /** The model ended its turn itself. */
  readonly ended: boolean;
  readonly thinks: boolean;
}

/** The deepest recorded call that a request goes on from. */
export interface Head {
  readonly index: number;
  /** Messages of its conversation, its reply included. */
  readonly count: number;
}

/** How far behind the start of a reply its first difference may lie where its thinking is gone. */
const THINKING_STARTS_WITHIN = 4;

export class History {
  readonly #conversations: Conversations;
  readonly #tree = new ConversationTree();
  readonly #calls: Known[] = [];
  /** Digests that replies with thinking would have without it. */
  readonly #withoutThinking = new Set<string>();
  /** Digests of replies. */
  readonly #replies = new Set<string>();
  /** Second messages of conversations. */
  readonly #seconds = new Set<string>();

  constructor(conversations: Conversations) {
    this.#conversations = conversations;
  }

  /** Take in the next record; the conversations hold it already. */
  add(record: Completion): void {
    const { baseIndex, baseMessageCount: baseCount, messageDigests: fresh, replyDigest: reply } = record;
    this.#tree.add({ baseIndex, baseCount, fresh, reply });
    if (reply !== '') this.#replies.add(reply);
    const second = baseCount < 2 ? fresh[1 - baseCount] : undefined;
    if (second !== undefined) this.#seconds.add(second);
    const body = record.messageBodies[reply];
    const bare = body === undefined ? undefined : withoutThinking(body);
    if (bare !== undefined) this.#withoutThinking.add(bare);
    const root = record.mode === 'token' ? this.#rootOf(record) : undefined;
    this.#calls.push({ ...knownOf(record, bare !== undefined), root: root ?? this.#calls.length });
  }

  /** Of a call that was given ids. Its base may be a branch beside it, whose root has what this one does not. */
  #rootOf({ baseIndex, baseLength }: Completion): number | undefined {
    let shared = baseLength;
    for (let index = baseIndex; index >= 0; ) {
      const base = this.call(index);
      if (this.call(base.root).promptLength <= shared) return base.root;
      shared = Math.min(shared, base.baseLength);
      index = base.baseIndex;
    }
    return undefined;
  }

  call(index: number): Known {
    const known = this.#calls[index];
    if (known === undefined) throw new RangeError(`call ${index} of ${this.#calls.length}`);
    return known;
  }

  /** Whether this is what a reply said, be it without its thinking. */
  isSaid(digest: string): boolean {
    return this.#replies.has(digest) || this.#withoutThinking.has(digest);
  }

  /** How many of the messages stand at the start of a call's conversation, its reply included. */
  shared(index: number, digests: readonly string[]): number {
    return this.#tree.shared(index, digests);
  }

  /** The call to go on from; a reason where there is none that was rendered with the same tools and settings. */
  headOf(asked: Conversation): Head | Drift {
    const { digests } = asked;
    const isPolicys = (index: number): boolean => this.call(index).lastId !== undefined;
    for (const { heads, headCount } of this.#tree.headsOf(digests)) {
      const index = heads.findLast((one) => isPolicys(one) && this.#sameFrame(asked, one));
      if (index !== undefined) return { index, count: headCount };
    }
    const found = this.#tree.find(digests);
    const heads = found.heads.filter(isPolicys);
    if (heads.length === 0) return this.#classify(asked, found, -1, () => false);
    return heads.some((one) => this.call(one).tools === asked.tools) ? 'settings_changed' : 'tools_changed';
  }

  /**
   * Why the prompt does not extend its conversation. `at` is the index of its first id that is another, `extended` tells
   * whether it begins with all ids of a call; `behind` is the one that it was made to go on from, if it was.
   */
  driftOf(asked: Conversation, at: number, extended: (call: number) => boolean, behind?: number): Drift {
    const found = this.#tree.find(asked.digests);
    const heads = behind === undefined ? found.heads : [behind];
    return this.#classify(asked, { ...found, heads }, at, extended);
  }

  /** Whether the id at this place of a call's ids, or of those that it goes on from, was sampled. */
  sampledAt(call: number, place: number): boolean {
    const { promptLength, sampledLength } = this.#bringerOf(call, place);
    return place >= promptLength && place < promptLength + sampledLength;
  }

  /** The call that brought the id at this place: this one, or one that it takes its beginning from. */
  #bringerOf(call: number, place: number): Known {
    let known = this.call(call);
    while (place < known.baseLength) known = this.call(known.baseIndex);
    return known;
  }

  #classify(asked: Conversation, found: Found, at: number, extended: (call: number) => boolean): Drift {
    const { digests } = asked;
    const { shared, nearest, heads } = found;
    const earlier = nearest < 0 ? [] : this.#wholeOf(nearest);
    const later = digests.slice(shared + 1).filter((digest, i) => digest === earlier[shared + 1 + i]);
    const framed = heads.length > 0 ? heads : [nearest];
    const sameTools = framed.filter((index) => index >= 0 && this.call(index).tools === asked.tools);
    const head = heads.at(-1);
    return driftOf({
      total: digests.length,
      systems: systemsOf(asked),
      shared,
      earlierTotal: earlier.length,
      sameTools: sameTools.length > 0,
      sameSettings: sameTools.some((index) => this.#sameFrame(asked, index)),
      inPlace: later.length,
      turnReplaced: objectOf(asked.messages[shared]?.value)['role'] === 'assistant',
      withoutThinking: this.#withoutThinking.has(digests[shared] ?? ''),
      secondKnown: digests[1] !== undefined && this.#seconds.has(digests[1]),
      head:
        head === undefined
          ? undefined
          : { extended: extended(head), atThinking: this.#startsThinking(head, at) },
    });
  }

  #startsThinking(head: number, at: number): boolean {
    if (at < 0) return false;
    const { thinks, promptLength } = this.#bringerOf(head, at);
    return thinks && at >= promptLength && at < promptLength + THINKING_STARTS_WITHIN;
  }

  #sameFrame(asked: Conversation, index: number): boolean {
    const { tools, settings } = this.call(index);
    return tools === asked.tools && settings === asked.settings;
  }

  #wholeOf(index: number): string[] {
    const reply = this.#conversations.replyOf(index);
    const messages = this.#conversations.messagesOf(index);
    return reply === '' ? messages : [...messages, reply];
  }
}

function systemsOf({ messages }: Conversation): number {
  const first = messages.findIndex(({ value }) => {
    const { role } = objectOf(value);
    return role !== 'system' && role !== 'developer';
  });
  return first < 0 ? messages.length : first;
}

function knownOf(record: Completion, thinks: boolean): Omit<Known, 'root'> {
  const { baseIndex, baseLength, promptLength, toolsDigest, finishReason } = record;
  const sampling = record.sampling ?? {};
  const sampled = unpackIds(record.sampledIds);
  const natural = finishReason === 'stop' || finishReason === 'tool_calls';
  return {
    baseIndex,
    baseLength,
    tools: toolsDigest,
    settings: settingsKey(sampling),
    messages: record.baseMessageCount + record.messageDigests.length,
    promptLength,
    sampledLength: sampled.length,
    lastId: record.trainable ? sampled.at(-1) : undefined,
    ended: natural && !stops(sampling) && !stopsAt(sampling, sampled.at(-1)),
    thinks,
  };
}

const stops = ({ stop }: JsonObject): boolean => typeof stop === 'string' || arrayOf(stop).length > 0;

/** Whether the last id may have ended the reply because the request says so: to the template it is no end of a turn. */
const stopsAt = ({ stop_token_ids: ids }: JsonObject, last: number | undefined): boolean =>
  last !== undefined && arrayOf(ids).includes(last);

/** The digest of a stored reply without its thinking; unset where it has none. */
function withoutThinking(body: string): string | undefined {
  if (!body.includes('"reasoning') && !body.includes('</think>')) return undefined;
  const message: unknown = JSON.parse(body);
  if (!isObject(message) || thinkingOf(message) === '') return undefined;
  const { reasoning: _, reasoning_content: __, content, ...rest } = message;
  const text = typeof content === 'string' ? content.replace(/^[\s\S]*<\/think>\s*/, '') : (content ?? null);
  return digestMessage({ ...rest, content: text }).digest;
}
