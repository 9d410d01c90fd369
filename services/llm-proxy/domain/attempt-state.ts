// What the proxy knows of one attempt: its token tree, what its records have said, and the next record.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { packIds, unpackIds } from '../../common/columns.ts';
import { Conversations } from '../../common/conversations.ts';
import { PolarError } from '../../common/errors.ts';
import { joined, startsWith } from './bridge.ts';
import { type CompletionFields, completionOf } from './completion.ts';
import type { Drift } from './drift.ts';
import { type Conversation, type Head, History } from './history.ts';
import type { JsonObject } from './json.ts';
import { type Digested, digestMessage } from './messages.ts';
import { type ExpertFields, expertFields, KnownRows, type ToldExperts } from './routed-experts.ts';
import { SaidCalls } from './said-calls.ts';
import { StoredReplies } from './stored-replies.ts';
import { settingsKey } from './template-settings.ts';
import { type Base, TokenTree } from './token-tree.ts';

/** A call to be recorded. What depends on the records before it is filled in by `encode`. */
export interface Draft {
  /** Of the prompt, behind all ids of the call `behind`. */
  readonly promptIds: Int32Array;
  /** Index of that call; unset: `promptIds` are the whole prompt. */
  readonly behind?: number;
  readonly sampledIds: Int32Array;
  /** Unset: the engine was not asked for them. */
  readonly experts?: ToldExperts | undefined;
  readonly messages: readonly Digested[];
  /** Of each message. */
  readonly digests: readonly string[];
  readonly tools: Digested | undefined;
  /** Unset: it was not delivered. */
  readonly reply: Digested | undefined;
  /** All other fields. */
  readonly fields: CompletionFields;
}

/** The ids of a recorded call: its prompt, then what was sampled. */
export interface CallIds {
  readonly length: number;
  /** Those from a place on. */
  from(place: number): Int32Array;
  /** Whether they begin with all ids of an earlier call. */
  extend(call: number): boolean;
}

/** The recorded call that a request goes on from, as far as its ids are needed to do so. */
export interface GoesOn extends Head {
  readonly ids: CallIds;
  readonly lastId: number | undefined;
  /** Rows of routed experts that are known of it, from its first id on. */
  readonly expertRows: number;
  /** The model ended its turn itself, not a limit or a stop string. */
  readonly ended: boolean;
  /** Whether the id at this place was sampled. */
  readonly sampledAt: (place: number) => boolean;
  /** The call whose prompt the engine made: its messages are the first ones of the request. */
  readonly root: { readonly messages: number; readonly ids: () => Int32Array };
}

export class AttemptState {
  readonly #tree = new TokenTree();
  readonly #conversations = new Conversations();
  readonly #history = new History(this.#conversations);
  readonly #expertRows = new KnownRows();
  /** Digests whose bodies are in a record. */
  readonly #bodies = new Set<string>();
  /** Tool calls as the model wrote them. */
  readonly said = new SaidCalls();
  /** Messages without their names, by the message as sent. */
  readonly #unnamed = new WeakMap<JsonObject, JsonObject>();
  /** Replies that requests may name. */
  readonly stored = new StoredReplies(this.#conversations);
  #firstSeq = 0;
  #lastSeq = 0;
  #nextOrder = 0n;
  #lastErrorReason = '';

  /** Records; the next one gets this index. */
  get calls(): number {
    return this.#tree.size;
  }

  /** Stream sequence of the first record, 0 if none. */
  get firstSeq(): number {
    return this.#firstSeq;
  }

  /** Stream sequence of the last record, 0 if none. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Error reason of the last record, empty where it has none. */
  get lastErrorReason(): string {
    return this.#lastErrorReason;
  }

  /** The counter that begins and ends of calls share, behind the last record. */
  get nextOrder(): bigint {
    return this.#nextOrder;
  }

  /** The message without the name that a harness has given to it, where a reply of the attempt said it. */
  unnamed(message: JsonObject): JsonObject {
    if (message['role'] !== 'assistant' || typeof message['name'] !== 'string') return message;
    const known = this.#unnamed.get(message);
    if (known !== undefined) return known;
    const { name: _, ...plain } = message;
    if (!this.#history.isSaid(digestMessage(plain).digest)) return message;
    this.#unnamed.set(message, plain);
    return plain;
  }

  /** Where a request goes on; a reason where it does not, empty where nothing came before it. */
  goesOn(asked: Conversation): GoesOn | Drift {
    const head = this.#history.headOf(asked);
    if (typeof head === 'string') return head;
    const { lastId, ended, root } = this.#history.call(head.index);
    const { messages, promptLength } = this.#history.call(root);
    return {
      ...head,
      lastId,
      ended,
      ids: this.#idsOf(head.index),
      expertRows: this.#expertRows.of(head.index, this.#tree.lengthOf(head.index)),
      sampledAt: (place) => this.#history.sampledAt(head.index, place),
      root: { messages, ids: () => this.#tree.idsOf(root, 0, promptLength) },
    };
  }

  #idsOf(index: number): CallIds {
    return {
      length: this.#tree.lengthOf(index),
      from: (place) => this.#tree.idsOf(index, place),
      extend: (call) => this.#tree.extends(index, call),
    };
  }

  /** The draft as the next record. */
  encode(draft: Draft): Completion {
    const { promptIds, behind = -1 } = draft;
    const before = behind < 0 ? 0 : this.#tree.lengthOf(behind);
    const base = this.#baseOf(promptIds, behind);
    const { digests } = draft;
    const baseMessageCount = this.#history.shared(base.index, digests);
    // What the base's messages say is in the records.
    const said = [...draft.messages.slice(baseMessageCount), draft.tools, draft.reply];
    return completionOf({
      ...draft.fields,
      ...this.#expertsOf(draft, base, before + promptIds.length + draft.sampledIds.length),
      index: this.calls,
      baseIndex: base.index,
      baseLength: base.length,
      promptSuffixIds: packIds(promptIds.subarray(base.length - before)),
      promptLength: before + promptIds.length,
      sampledIds: packIds(draft.sampledIds),
      baseMessageCount,
      messageDigests: digests.slice(baseMessageCount),
      messageBodies: this.#newBodies(said),
      toolsDigest: draft.tools?.digest ?? '',
      replyDigest: draft.reply?.digest ?? '',
      drift: this.#driftOf(draft, base),
    });
  }

  /** The rows that the base does not have. */
  #expertsOf({ experts }: Draft, { index, length }: Base, ids: number): Partial<ExpertFields> {
    return experts === undefined ? {} : expertFields(experts, this.#expertRows.of(index, length), ids);
  }

  /** Where an engine tells no ids, the call before it: what is new in its messages is all that is stored. */
  #baseOf(promptIds: Int32Array, behind: number): Base {
    if (promptIds.length > 0 || behind >= 0) return this.#tree.findBase(promptIds, behind);
    return { index: this.calls - 1, length: 0 };
  }

  /** What the call itself says of it goes before what the ids show. */
  #driftOf(draft: Draft, { index, length }: Base): string {
    const { messages, digests, tools, fields } = draft;
    const extended = index >= 0 && length === this.#tree.lengthOf(index);
    if (extended || (draft.promptIds.length === 0 && draft.behind === undefined) || this.calls === 0)
      return '';
    if (fields.drift !== undefined && fields.drift !== '') return fields.drift;
    const settings = settingsKey(fields.sampling ?? {});
    const whole = this.#wholePrompt(draft);
    const extendedBy = (call: number): boolean => startsWith(whole, this.#tree.idsOf(call));
    const asked = { messages, digests, tools: tools?.digest ?? '', settings };
    return this.#history.driftOf(asked, length, extendedBy, draft.behind);
  }

  #wholePrompt({ promptIds, behind }: Draft): Int32Array {
    return behind === undefined ? promptIds : joined(this.#tree.idsOf(behind), promptIds);
  }

  /** Each body is stored once, with the first record that names it. */
  #newBodies(said: readonly (Digested | undefined)[]): Record<string, string> {
    // Without a prototype: of an object with one, V8 makes a hidden class for each new name.
    const bodies: Record<string, string> = Object.create(null);
    for (const one of said) {
      if (one !== undefined && !this.#bodies.has(one.digest))
        bodies[one.digest] ??= JSON.stringify(one.value);
    }
    return bodies;
  }

  /** Take in a record that is stored at `seq`. Throws RECORDS_MISSING when it is not the next one. */
  apply(record: Completion, seq: number): void {
    if (record.index !== this.calls) {
      throw new PolarError('RECORDS_MISSING', `record ${record.index} where ${this.calls} is next`);
    }
    const base = { index: record.baseIndex, length: record.baseLength };
    this.#tree.add(base, unpackIds(record.promptSuffixIds), unpackIds(record.sampledIds));
    this.#conversations.add({
      baseIndex: record.baseIndex,
      baseCount: record.baseMessageCount,
      fresh: record.messageDigests,
      reply: record.replyDigest,
    });
    this.#history.add(record);
    this.#expertRows.add(record);
    this.said.add(record);
    this.stored.add(record);
    for (const digest of Object.keys(record.messageBodies)) this.#bodies.add(digest);
    if (this.#firstSeq === 0) this.#firstSeq = seq;
    this.#lastSeq = seq;
    this.#lastErrorReason = record.errorReason;
    if (record.endSeq >= this.#nextOrder) this.#nextOrder = record.endSeq + 1n;
  }
}
