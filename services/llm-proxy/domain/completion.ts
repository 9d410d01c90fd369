// Records as they are made here. `create` of the protobuf runtime makes a dictionary of a message with so many fields,
// which is slow to read and to write and takes as much memory as all else of a small call; this is an object of one form.
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type CallTimes,
  type CallTimesSchema,
  type Completion,
  PolicySpanSchema,
  type Usage,
  type UsageSchema,
} from '../../../gen/ts/polar/event/v1/completion_pb.js';

type Within = 'usage' | 'times' | 'policySpans';

/** Fields of a record; what is not among them has nothing to say. */
export interface CompletionFields extends Partial<Omit<Completion, '$typeName' | '$unknown' | Within>> {
  readonly usage?: MessageInitShape<typeof UsageSchema>;
  readonly times?: MessageInitShape<typeof CallTimesSchema>;
  readonly policySpans?: readonly MessageInitShape<typeof PolicySpanSchema>[];
}

const NO_BYTES = new Uint8Array();

/** A record that says this. Every field stands in it, so that all records have one hidden class. */
export function completionOf(fields: CompletionFields): Completion {
  const { usage, times } = fields;
  return {
    $typeName: 'polar.event.v1.Completion',
    callId: fields.callId ?? '',
    index: fields.index ?? 0,
    choiceIndex: fields.choiceIndex ?? 0,
    startSeq: fields.startSeq ?? 0n,
    endSeq: fields.endSeq ?? 0n,
    baseIndex: fields.baseIndex ?? 0,
    baseLength: fields.baseLength ?? 0,
    promptSuffixIds: fields.promptSuffixIds ?? NO_BYTES,
    promptLength: fields.promptLength ?? 0,
    sampledIds: fields.sampledIds ?? NO_BYTES,
    logprobs: fields.logprobs,
    finishReason: fields.finishReason ?? '',
    model: fields.model ?? '',
    engine: fields.engine ?? '',
    engineUrl: fields.engineUrl ?? '',
    engineTries: fields.engineTries ?? 0,
    logprobMode: fields.logprobMode ?? '',
    noTokenIds: fields.noTokenIds ?? false,
    routedExperts: fields.routedExperts,
    routedExpertsFault: fields.routedExpertsFault ?? '',
    policyVersion: fields.policyVersion ?? 0n,
    weightVersion: fields.weightVersion ?? '',
    policySpans: fields.policySpans?.map((span) => create(PolicySpanSchema, span)) ?? [],
    trainable: fields.trainable ?? false,
    role: fields.role ?? '',
    roleRule: fields.roleRule ?? '',
    baseMessageCount: fields.baseMessageCount ?? 0,
    messageDigests: fields.messageDigests ?? [],
    replyDigest: fields.replyDigest ?? '',
    toolsDigest: fields.toolsDigest ?? '',
    messageBodies: fields.messageBodies ?? {},
    sampling: fields.sampling,
    usage: usage && usageOf(usage),
    times: times && timesOf(times),
    errorReason: fields.errorReason ?? '',
    dialect: fields.dialect ?? '',
    mode: fields.mode ?? '',
    drift: fields.drift ?? '',
    normalisedBy: fields.normalisedBy ?? [],
    storedFrom: fields.storedFrom,
  };
}

const usageOf = (said: MessageInitShape<typeof UsageSchema>): Usage => ({
  $typeName: 'polar.event.v1.Usage',
  promptTokens: said.promptTokens ?? 0,
  completionTokens: said.completionTokens ?? 0,
  cachedTokens: said.cachedTokens ?? 0,
});

const timesOf = (said: MessageInitShape<typeof CallTimesSchema>): CallTimes => ({
  $typeName: 'polar.event.v1.CallTimes',
  startMs: said.startMs ?? 0n,
  firstTokenMs: said.firstTokenMs ?? 0,
  totalMs: said.totalMs ?? 0,
  queueMs: said.queueMs ?? 0,
  decodeMs: said.decodeMs ?? 0,
});
