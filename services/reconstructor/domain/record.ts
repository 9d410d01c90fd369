// What a build reads of a completion record, and only that: a record has twice as many fields, and to make a message of all
// of them takes four times as long as this.
import { fromBinary } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import {
  type Completion,
  CompletionSchema,
  PolicySpanSchema,
  RoutedExpertsSchema,
  type Usage,
  UsageSchema,
} from '../../../gen/ts/polar/event/v1/completion_pb.js';

/** A completion record, as the builders read it. */
export interface CallRecord
  extends Pick<
    Completion,
    | 'callId'
    | 'index'
    | 'startSeq'
    | 'endSeq'
    | 'baseIndex'
    | 'baseLength'
    | 'promptSuffixIds'
    | 'promptLength'
    | 'sampledIds'
    | 'finishReason'
    | 'model'
    | 'policyVersion'
    | 'trainable'
    | 'role'
    | 'messageDigests'
    | 'replyDigest'
    | 'messageBodies'
    | 'baseMessageCount'
    | 'policySpans'
    | 'noTokenIds'
    | 'routedExpertsFault'
  > {
  logprobs?: Uint8Array | undefined;
  usage?: Pick<Usage, 'completionTokens'> | undefined;
  routedExperts?: Completion['routedExperts'] | undefined;
}

const NOTHING: Uint8Array = new Uint8Array();
/** Shared by the records that have none, nearly all: a list for each would be one more object to collect. */
const NO_SPANS: CallRecord['policySpans'] = [];
const NO_BODIES: CallRecord['messageBodies'] = {};

/** With what the fields are where they are not written. */
class EmptyRecord implements CallRecord {
  callId = '';
  index = 0;
  startSeq = 0n;
  endSeq = 0n;
  baseIndex = 0;
  baseLength = 0;
  promptSuffixIds = NOTHING;
  promptLength = 0;
  sampledIds = NOTHING;
  logprobs: CallRecord['logprobs'] = undefined;
  finishReason = '';
  model = '';
  policyVersion = 0n;
  trainable = false;
  role = '';
  messageDigests: string[] = [];
  replyDigest = '';
  messageBodies = NO_BODIES;
  usage: CallRecord['usage'] = undefined;
  baseMessageCount = 0;
  policySpans = NO_SPANS;
  noTokenIds = false;
  routedExperts: CallRecord['routedExperts'] = undefined;
  routedExpertsFault = '';
}

/** Longest text that is read by its letters; and a list of so many letters for each length, used again and again. */
const SHORT = 32;
const LETTERS = Array.from({ length: SHORT + 1 }, (_, length) => new Array<number>(length).fill(0));

class RecordReader extends BinaryReader {
  readonly stored: Uint8Array;

  constructor(stored: Uint8Array) {
    super(stored);
    this.stored = stored;
  }

  /** Throws for what is not UTF-8. Nearly all texts are short and ASCII. */
  text(): string {
    const { pos: before, stored } = this;
    const length = this.uint32();
    const letters = LETTERS[length];
    const start = this.pos;
    this.pos = before;
    if (letters === undefined || start + length > this.len) return this.string(true);
    for (let i = 0; i < length; i++) {
      const letter = stored[start + i] as number;
      if (letter > 0x7f) return this.string(true);
      letters[i] = letter;
    }
    this.pos = start + length;
    return String.fromCharCode.apply(String, letters);
  }
}

/** Sets a field to what stands in the bytes. */
type Read<T> = (to: T, from: RecordReader) => void;

const USAGE: Read<{ completionTokens: number }>[] = [];
USAGE[UsageSchema.field.completionTokens.number] = (to, from) => {
  to.completionTokens = from.uint32();
};

/** An entry of a map. */
const BODY: Read<{ key: string; value: string }>[] = [];
BODY[1] = (to, from) => {
  to.key = from.text();
};
BODY[2] = (to, from) => {
  to.value = from.text();
};

const READS: Record<keyof CallRecord, Read<EmptyRecord>> = {
  callId: (to, from) => {
    to.callId = from.text();
  },
  index: (to, from) => {
    to.index = from.uint32();
  },
  startSeq: (to, from) => {
    to.startSeq = BigInt(from.uint64());
  },
  endSeq: (to, from) => {
    to.endSeq = BigInt(from.uint64());
  },
  baseIndex: (to, from) => {
    to.baseIndex = from.int32();
  },
  baseLength: (to, from) => {
    to.baseLength = from.uint32();
  },
  promptSuffixIds: (to, from) => {
    to.promptSuffixIds = from.bytes();
  },
  promptLength: (to, from) => {
    to.promptLength = from.uint32();
  },
  sampledIds: (to, from) => {
    to.sampledIds = from.bytes();
  },
  logprobs: (to, from) => {
    to.logprobs = from.bytes();
  },
  finishReason: (to, from) => {
    to.finishReason = from.text();
  },
  model: (to, from) => {
    to.model = from.text();
  },
  policyVersion: (to, from) => {
    to.policyVersion = BigInt(from.uint64());
  },
  trainable: (to, from) => {
    to.trainable = from.bool();
  },
  role: (to, from) => {
    to.role = from.text();
  },
  messageDigests: (to, from) => {
    // A list that is made empty gets room for 17 with its first one; most turns add one message.
    if (to.messageDigests.length === 0) to.messageDigests = [from.text()];
    else to.messageDigests.push(from.text());
  },
  replyDigest: (to, from) => {
    to.replyDigest = from.text();
  },
  messageBodies: (to, from) => {
    const { key, value } = message({ key: '', value: '' }, from, BODY);
    if (to.messageBodies === NO_BODIES) to.messageBodies = {};
    to.messageBodies[key] = value;
  },
  usage: (to, from) => {
    to.usage = message({ completionTokens: 0 }, from, USAGE);
  },
  baseMessageCount: (to, from) => {
    to.baseMessageCount = from.uint32();
  },
  policySpans: (to, from) => {
    if (to.policySpans === NO_SPANS) to.policySpans = [];
    to.policySpans.push(fromBinary(PolicySpanSchema, from.bytes()));
  },
  noTokenIds: (to, from) => {
    to.noTokenIds = from.bool();
  },
  routedExperts: (to, from) => {
    to.routedExperts = fromBinary(RoutedExpertsSchema, from.bytes());
  },
  routedExpertsFault: (to, from) => {
    to.routedExpertsFault = from.text();
  },
};
const RECORD: Read<EmptyRecord>[] = [];
for (const name of Object.keys(READS) as (keyof CallRecord)[])
  RECORD[CompletionSchema.field[name].number] = READS[name];

/** A record as it lies in the stream. Throws where the bytes are none. */
export const readRecord = (stored: Uint8Array): CallRecord =>
  fields(new EmptyRecord(), new RecordReader(stored), stored.byteLength, RECORD);

const message = <T>(to: T, from: RecordReader, reads: readonly Read<T>[]): T =>
  fields(to, from, from.uint32() + from.pos, reads);

/** Those that have no reader are passed over. */
function fields<T>(to: T, from: RecordReader, end: number, reads: readonly Read<T>[]): T {
  while (from.pos < end) {
    const tag = from.uint32();
    const read = reads[tag >>> 3];
    if (read !== undefined) read(to, from);
    else if (tag >>> 3 === 0) throw new RangeError('the record has a field 0');
    else if ((tag & 7) === WireType.LengthDelimited) from.pos = from.uint32() + from.pos;
    else from.skip((tag & 7) as WireType, tag >>> 3);
  }
  if (from.pos > from.len) throw new RangeError('the record ends in the middle of a field');
  return to;
}
