// Records as they are made here. `create` of the protobuf runtime makes a dictionary of a message with so many fields,
// which is slow to read and to write and takes as much memory as all else of a small call; this is an object of one form.
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  CallTimesSchema,
  type Completion,
  PolicySpanSchema,
  UsageSchema,
} from '../../../gen/ts/polar/event/v1/completion_pb.js';

type Within = 'usage' | 'times' | 'policySpans';

/** Fields of a record; what is not among them has nothing to say. */
export interface CompletionFields extends Partial<Omit<Completion, '$typeName' | '$unknown' | Within>> {
  readonly usage?: MessageInitShape<typeof UsageSchema>;
  readonly times?: MessageInitShape<typeof CallTimesSchema>;
  readonly policySpans?: readonly MessageInitShape<typeof PolicySpanSchema>[];
}

const NO_BYTES = new Uint8Array();

/** Every field, so that all records have one hidden class. */
const NOTHING: Required<Omit<Completion, '$unknown'>> = {
  $typeName: 'polar.event.v1.Completion',
  callId: '',
  index: 0,
  choiceIndex: 0,
  startSeq: 0n,
  endSeq: 0n,
  baseIndex: 0,
  baseLength: 0,
  promptSuffixIds: NO_BYTES,
  promptLength: 0,
  sampledIds: NO_BYTES,
  logprobs: undefined,
  finishReason: '',
  model: '',
  engine: '',
  engineUrl: '',
  engineTries: 0,
  logprobMode: '',
  noTokenIds: false,
  routedExperts: undefined,
  routedExpertsFault: '',
  policyVersion: 0n,
  weightVersion: '',
  policySpans: [],
  trainable: false,
  role: '',
  roleRule: '',
  baseMessageCount: 0,
  messageDigests: [],
  replyDigest: '',
  toolsDigest: '',
  messageBodies: {},
  sampling: undefined,
  usage: undefined,
  times: undefined,
  errorReason: '',
  dialect: '',
  mode: '',
  drift: '',
  normalisedBy: [],
};

/** A record that says this. */
export function completionOf(fields: CompletionFields): Completion {
  const { usage, times, policySpans = [], ...said } = fields;
  const within = {
    usage: usage && create(UsageSchema, usage),
    times: times && create(CallTimesSchema, times),
    policySpans: policySpans.map((span) => create(PolicySpanSchema, span)),
  };
  return { ...NOTHING, ...said, ...within };
}
