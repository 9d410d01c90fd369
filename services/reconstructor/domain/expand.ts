// Completion records to calls: prompts are restored from what each record names as its base.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { unpackFloats, unpackIds } from '../../common/columns.ts';
import { Conversations } from '../../common/conversations.ts';
import { PolarError } from '../../common/errors.ts';
import { type Call, maskOf } from './call.ts';
import { TokenTree } from './token-tree.ts';

/** The records of an attempt by index, each once. Throws RECORDS_MISSING when they are not 0 to count - 1. */
export function inOrder(records: readonly Completion[], count: number): Completion[] {
  const byIndex = new Map<number, Completion>();
  for (const record of records) {
    if (!byIndex.has(record.index)) byIndex.set(record.index, record);
  }
  const ordered: Completion[] = [];
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

/** Calls from records in index order. Throws RECORDS_INVALID. Linear in the ids that the records hold. */
export function expand(records: readonly Completion[]): Call[] {
  const tree = new TokenTree();
  const conversations = new Conversations();
  const calls: Call[] = [];
  for (const record of records) {
    calls.push(expandOne(tree, calls, record, messagesOf(conversations, calls.length, record)));
  }
  return calls;
}

function messagesOf(conversations: Conversations, index: number, record: Completion): string[] {
  const { baseIndex, baseMessageCount: baseCount, messageDigests: fresh, replyDigest: reply } = record;
  try {
    conversations.add({ baseIndex, baseCount, fresh, reply });
  } catch (error) {
    throw invalid(record, (error as Error).message);
  }
  return conversations.messagesOf(index);
}

function expandOne(
  tree: TokenTree,
  earlier: readonly Call[],
  record: Completion,
  messages: readonly string[],
): Call {
  const { callId, baseIndex, baseLength } = record;
  const base = baseIndex < 0 ? tree.root : earlier[baseIndex]?.end;
  if (base === undefined || baseLength > base.depth) {
    throw invalid(record, `takes ${baseLength} ids from record ${baseIndex}, which has not as many`);
  }
  const suffix = idColumn(record, record.promptSuffixIds);
  const sampledIds = idColumn(record, record.sampledIds);
  const prompt = tree.extend(tree.ancestor(base, baseLength), suffix);
  if (prompt.depth !== record.promptLength) {
    throw invalid(record, `has a prompt of ${prompt.depth} ids, not ${record.promptLength}`);
  }
  if ((record.logprobs?.byteLength ?? 0) % 4 !== 0)
    throw invalid(record, 'has a logprob column of odd length');
  const source = {
    sampledIds,
    logprobs: record.logprobs && unpackFloats(record.logprobs),
    finishReason: record.finishReason,
    trainable: record.trainable,
    role: record.role === '' ? 'main' : record.role,
  };
  return {
    ...source,
    ...maskOf(source),
    callId,
    noTokenIds: record.noTokenIds,
    startSeq: Number(record.startSeq),
    endSeq: Number(record.endSeq),
    prompt,
    end: tree.extend(prompt, sampledIds),
    model: record.model,
    policyVersion: record.policyVersion,
    messages,
    reply: record.replyDigest === '' ? null : record.replyDigest,
    usageCompletionTokens: record.usage?.completionTokens,
  };
}

function idColumn(record: Completion, bytes: Uint8Array): Int32Array {
  if (bytes.byteLength % 4 !== 0) throw invalid(record, 'has an id column of odd length');
  return unpackIds(bytes);
}

const invalid = (record: Completion, what: string): PolarError =>
  new PolarError('RECORDS_INVALID', `completion record ${record.index} (${record.callId}) ${what}`);
