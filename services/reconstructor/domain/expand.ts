// Completion records to calls: prompts are restored from what each record names as its base.
import { ColumnRoom, roomOf } from '../../common/columns.ts';
import { PolarError } from '../../common/errors.ts';
import type { Call, PolicyRun } from './call.ts';
import { expertRowsOf } from './experts.ts';
import { Images } from './images.ts';
import { MessageNode } from './message-tree.ts';
import type { CallRecord } from './record.ts';
import { TokenTree } from './token-tree.ts';
import { Replies } from './tool-calls.ts';

/** The records of an attempt by index, each once. Throws RECORDS_MISSING when they are not 0 to count - 1. */
export function inOrder<T extends Pick<CallRecord, 'index'>>(records: readonly T[], count: number): T[] {
  const byIndex = new Map<number, T>();
  for (const record of records) {
    if (!byIndex.has(record.index)) byIndex.set(record.index, record);
  }
  const ordered: T[] = [];
  for (let index = 0; index < count; index++) {
    const record = byIndex.get(index);
    if (record !== undefined) ordered.push(record);
  }
  if (ordered.length === count && byIndex.size === count) return ordered;
  throw new PolarError(
    'RECORDS_MISSING',
    `the attempt has ${count} completion records, ${byIndex.size} were found, ${ordered.length} of them with an index below ${count}`,
  );
}

/** Calls from records in index order. Throws RECORDS_INVALID. Linear in what is new in each record. */
export function expand(records: readonly CallRecord[]): Call[] {
  const conversation = new MessageNode();
  const replies = new Replies();
  const images = new Images();
  const calls: Call[] = [];
  const session: Session = { tree: new TokenTree(), room: roomFor(records), earlier: calls };
  for (const record of records) {
    replies.add(record.messageBodies);
    images.add(record.messageBodies);
    const said = {
      images,
      messages: messagesOf(conversation, calls, record),
      invalidToolCall: replies.hasInvalidCall(record.replyDigest, record.finishReason),
    };
    calls.push(expandOne(session, record, said));
  }
  return calls;
}

/** The first of the base's messages and its reply, then those that are new. */
function messagesOf(root: MessageNode, earlier: readonly Call[], record: CallRecord): MessageNode {
  const { baseIndex, baseMessageCount: count, messageDigests } = record;
  if (count === 0) return root.extend(messageDigests);
  const base = earlier[baseIndex];
  const said = base?.reply == null ? base?.messages : base.messages.next(base.reply);
  if (said === undefined || count > said.depth) {
    throw invalid(record, `takes ${count} messages from record ${baseIndex}, which has not as many`);
  }
  return said.ancestor(count).extend(messageDigests);
}

function roomFor(records: readonly CallRecord[]): ColumnRoom {
  let bytes = 0;
  for (const { promptSuffixIds, sampledIds, logprobs } of records)
    bytes += roomOf(promptSuffixIds) + roomOf(sampledIds) + roomOf(logprobs);
  return new ColumnRoom(bytes);
}

interface Session {
  readonly tree: TokenTree;
  readonly room: ColumnRoom;
  readonly earlier: readonly Call[];
}

function expandOne(
  { tree, room, earlier }: Session,
  record: CallRecord,
  said: Pick<Call, 'messages' | 'invalidToolCall' | 'images'>,
): Call {
  const { callId, baseIndex, baseLength } = record;
  const base = baseIndex < 0 ? tree.root : earlier[baseIndex]?.end;
  if (base === undefined || baseLength > base.depth) {
    throw invalid(record, `takes ${baseLength} ids from record ${baseIndex}, which has not as many`);
  }
  const suffix = idColumn(room, record, record.promptSuffixIds);
  const sampledIds = idColumn(room, record, record.sampledIds);
  const prompt = tree.extend(tree.ancestor(base, baseLength), suffix);
  if (prompt.depth !== record.promptLength) {
    throw invalid(record, `has a prompt of ${prompt.depth} ids, not ${record.promptLength}`);
  }
  if ((record.logprobs?.byteLength ?? 0) % 4 !== 0)
    throw invalid(record, 'has a logprob column of odd length');
  const end = tree.extend(prompt, sampledIds);
  const { policyVersion, policyRuns } = versionsOf(record, sampledIds.length);
  // One literal without spreads: a long session has its calls in memory together, and so they take the least.
  return {
    images: said.images,
    messages: said.messages,
    invalidToolCall: said.invalidToolCall,
    sampledIds,
    experts: expertRowsOf(record, earlier[baseIndex], end.depth, invalid),
    expertsFault: record.routedExpertsFault,
    logprobs: record.logprobs && room.floats(record.logprobs),
    finishReason: record.finishReason,
    trainable: record.trainable,
    role: record.role === '' ? 'main' : record.role,
    callId,
    noTokenIds: record.noTokenIds,
    startSeq: Number(record.startSeq),
    endSeq: Number(record.endSeq),
    prompt,
    end,
    model: record.model,
    policyVersion,
    policyRuns,
    reply: record.replyDigest === '' ? null : record.replyDigest,
    usageCompletionTokens: record.usage?.completionTokens,
  };
}

const NO_RUNS: readonly PolicyRun[] = [];

/**
 * By which weights the ids were sampled. Runs are the engine's word: where they are not those of all sampled ids, in order,
 * the call counts as sampled by the oldest of them.
 */
function versionsOf(record: CallRecord, sampled: number): Pick<Call, 'policyVersion' | 'policyRuns'> {
  const { policyVersion, policySpans } = record;
  if (policySpans.length === 0) return { policyVersion, policyRuns: NO_RUNS };
  const fits = policySpans.every(
    ({ start, end }, i) => start === (policySpans[i - 1]?.end ?? 0) && end > start,
  );
  if (fits && policySpans.at(-1)?.end === sampled) {
    const policyRuns = policySpans.map((span) => ({
      policyVersion: span.policyVersion,
      start: span.start,
      length: span.end - span.start,
    }));
    return { policyVersion, policyRuns };
  }
  const versions = policySpans.map((span) => span.policyVersion);
  return { policyVersion: versions.reduce((a, b) => (a < b ? a : b)), policyRuns: NO_RUNS };
}

function idColumn(room: ColumnRoom, record: CallRecord, bytes: Uint8Array): Int32Array {
  if (bytes.byteLength % 4 !== 0) throw invalid(record, 'has an id column of odd length');
  return room.ids(bytes);
}

const invalid = (record: CallRecord, what: string): PolarError =>
  new PolarError('RECORDS_INVALID', `completion record ${record.index} (${record.callId}) ${what}`);
