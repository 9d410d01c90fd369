// Records as they are stored: to the byte what `toBinary` of the protobuf runtime makes of them, at a quarter of its price.
// That makes a writer for each, lets its buffer grow from nothing, and asks for every field by its name.
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type {
  CallTimes,
  Completion,
  PolicySpan,
  RoutedExperts,
  Usage,
} from '../../../gen/ts/polar/event/v1/completion_pb.js';
import type { JsonObject, JsonValue } from './json.ts';

/** Its buffer is kept from record to record. */
let writer = new BinaryWriter();
/** A record with more than that takes its buffer with it. */
const KEPT_BYTES_MAX = 1024 * 1024;

export function recordBytes(record: Completion): Uint8Array {
  try {
    writeRecord(record);
    const bytes = writer.finish();
    if (bytes.length > KEPT_BYTES_MAX) writer = new BinaryWriter();
    return bytes;
  } catch (error) {
    // What was begun is not to stand before the next one.
    writer = new BinaryWriter();
    throw error;
  }
}

/** Every field, by its number. */
function writeRecord(record: Completion): void {
  const { logprobs, sampling, usage, times, routedExperts } = record;
  text(1, record.callId);
  count(2, record.index);
  big(3, record.startSeq);
  big(4, record.endSeq);
  if (record.baseIndex !== 0) writer.tag(5, WireType.Varint).int32(record.baseIndex);
  count(6, record.baseLength);
  bytes(7, record.promptSuffixIds);
  count(8, record.promptLength);
  bytes(9, record.sampledIds);
  if (logprobs !== undefined) writer.tag(10, WireType.LengthDelimited).bytes(logprobs);
  text(11, record.finishReason);
  text(12, record.model);
  text(13, record.engine);
  big(14, record.policyVersion);
  text(15, record.weightVersion);
  flag(16, record.trainable);
  text(17, record.role);
  texts(18, record.messageDigests);
  text(19, record.replyDigest);
  for (const digest in record.messageBodies) writeBody(digest, record.messageBodies[digest] as string);
  if (sampling !== undefined) within(21, () => writeStruct(sampling));
  if (usage !== undefined) within(22, () => writeUsage(usage));
  if (times !== undefined) within(23, () => writeTimes(times));
  text(24, record.errorReason);
  text(25, record.toolsDigest);
  count(26, record.baseMessageCount);
  text(27, record.dialect);
  text(28, record.roleRule);
  text(29, record.mode);
  text(30, record.drift);
  count(31, record.engineTries);
  text(32, record.logprobMode);
  count(33, record.choiceIndex);
  for (const span of record.policySpans) within(34, () => writeSpan(span));
  texts(35, record.normalisedBy);
  text(36, record.engineUrl);
  flag(37, record.noTokenIds);
  if (routedExperts !== undefined) within(38, () => writeExperts(routedExperts));
  text(39, record.routedExpertsFault);
  if (record.storedFrom !== undefined) writer.tag(40, WireType.Varint).uint32(record.storedFrom);
}

function writeUsage({ promptTokens, completionTokens, cachedTokens }: Usage): void {
  count(1, promptTokens);
  count(2, completionTokens);
  count(3, cachedTokens);
}

function writeTimes({ startMs, firstTokenMs, totalMs, queueMs, decodeMs }: CallTimes): void {
  big(1, startMs);
  count(2, firstTokenMs);
  count(3, totalMs);
  count(4, queueMs);
  count(5, decodeMs);
}

function writeSpan({ policyVersion, weightVersion, start, end }: PolicySpan): void {
  big(1, policyVersion);
  text(2, weightVersion);
  count(3, start);
  count(4, end);
}

function writeExperts({ rows, first, layers, topK, itemBytes }: RoutedExperts): void {
  bytes(1, rows);
  count(2, first);
  count(3, layers);
  count(4, topK);
  count(5, itemBytes);
}

/** An entry of a map has both, empty or not. */
function writeBody(digest: string, body: string): void {
  within(20, () => {
    writer.tag(1, WireType.LengthDelimited).string(digest);
    writer.tag(2, WireType.LengthDelimited).string(body);
  });
}

/** google.protobuf.Struct. */
function writeStruct(members: JsonObject): void {
  for (const [name, value] of Object.entries(members)) {
    within(1, () => {
      writer.tag(1, WireType.LengthDelimited).string(name);
      within(2, () => writeValue(value));
    });
  }
}

/** google.protobuf.Value. */
function writeValue(value: JsonValue): void {
  if (value === null) writer.tag(1, WireType.Varint).int32(0);
  else if (typeof value === 'number') writer.tag(2, WireType.Bit64).double(value);
  else if (typeof value === 'string') writer.tag(3, WireType.LengthDelimited).string(value);
  else if (typeof value === 'boolean') writer.tag(4, WireType.Varint).bool(value);
  else if (!Array.isArray(value)) within(5, () => writeStruct(value as JsonObject));
  else
    within(6, () => {
      for (const one of value as JsonValue[]) within(1, () => writeValue(one));
    });
}

function within(field: number, write: () => void): void {
  writer.tag(field, WireType.LengthDelimited).fork();
  write();
  writer.join();
}

function text(field: number, value: string): void {
  if (value !== '') writer.tag(field, WireType.LengthDelimited).string(value);
}

function texts(field: number, values: readonly string[]): void {
  for (const value of values) writer.tag(field, WireType.LengthDelimited).string(value);
}

function bytes(field: number, value: Uint8Array): void {
  if (value.length > 0) writer.tag(field, WireType.LengthDelimited).bytes(value);
}

function count(field: number, value: number): void {
  if (value !== 0) writer.tag(field, WireType.Varint).uint32(value);
}

function big(field: number, value: bigint): void {
  if (value !== 0n) writer.tag(field, WireType.Varint).uint64(value);
}

function flag(field: number, value: boolean): void {
  if (value) writer.tag(field, WireType.Varint).bool(value);
}
