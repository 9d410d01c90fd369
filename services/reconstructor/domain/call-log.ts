// A session's calls as they were exported (docs/export-format.md), read back one by one and in any order.
import { create } from '@bufbuild/protobuf';
import { type TraceReward, TraceRewardSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { Call, PolicyRun } from './call.ts';
import { isCallExperts, isSameExperts, linkExperts, readExperts } from './exported-experts.ts';
import { Images } from './images.ts';
import { MessageNode } from './message-tree.ts';
import { type TokenNode, TokenTree } from './token-tree.ts';

/** Why a call was not taken. */
export interface CallFault {
  /** `repeated`: it is there already, equal in all but that one of both may lack its reward. The others are left out of the session. */
  readonly kind: 'invalid' | 'duplicate' | 'repeated';
  readonly why: string;
}

const FINISH_REASONS = ['stop', 'length', 'tool_calls', 'cancelled', 'abort', 'error'];
const ROLES = ['main', 'sub', 'side'];
const ID_MAX = 2 ** 31 - 1;

/** Exported calls name their messages and do not hold them. */
const NO_IMAGES = new Images();

type Fields = Readonly<Record<string, unknown>>;

/** The calls of one session. Prompts share memory, so that a session takes what is new in each call. */
export class CallLog {
  readonly #tree = new TokenTree();
  readonly #messages = new MessageNode();
  readonly #calls = new Map<string, Call>();
  readonly #rewards = new Map<string, number>();

  get calls(): Call[] {
    linkExperts(this.#calls);
    return [...this.#calls.values()];
  }

  /** Those that calls have. */
  get rewards(): readonly TraceReward[] {
    return Array.from(this.#rewards, ([callId, reward]) => create(TraceRewardSchema, { callId, reward }));
  }

  /** Take a call in, or say why not. */
  add(fields: Fields): CallFault | undefined {
    const why = wrong(fields);
    if (why !== undefined) return { kind: 'invalid', why };
    const call = this.#callOf(fields);
    const { callId } = call;
    const known = this.#calls.get(callId);
    if (known !== undefined && !isSame(known, call))
      return { kind: 'duplicate', why: `another call has the id ${callId}` };
    this.#calls.set(callId, known ?? call);
    if (!this.#reward(callId, fields['reward'] as number | undefined))
      return { kind: 'duplicate', why: `call ${callId} has another reward` };
    return known && { kind: 'repeated', why: `call ${callId} was there already` };
  }

  /** False where it has another one. An export from before the call was graded has none. */
  #reward(callId: string, reward: number | undefined): boolean {
    const known = this.#rewards.get(callId) ?? reward;
    if (known !== undefined) this.#rewards.set(callId, known);
    return reward === undefined || reward === known;
  }

  /** Numbers between the first start and the last end that no call has: calls that are missing, where each has its own. */
  get gaps(): number {
    const seqs = [...this.#calls.values()].flatMap(({ startSeq, endSeq }) => [startSeq, endSeq]);
    const distinct = new Set(seqs);
    if (distinct.size < seqs.length || seqs.length === 0) return 0;
    const [first, last] = seqs.reduce(([a, b], seq) => [Math.min(a, seq), Math.max(b, seq)], [Infinity, 0]);
    return last - first + 1 - distinct.size;
  }

  #callOf(fields: Fields): Call {
    const sampledIds = Int32Array.from(fields['sampled_ids'] as number[]);
    const prompt = this.#tree.extend(this.#tree.root, Int32Array.from(fields['prompt_ids'] as number[]));
    const end = this.#tree.extend(prompt, sampledIds);
    return {
      sampledIds,
      logprobs: logprobsOf(fields['logprobs']),
      finishReason: fields['finish_reason'] as string,
      trainable: fields['trainable'] !== false,
      role: (fields['role'] as string | undefined) ?? 'main',
      invalidToolCall: fields['invalid_tool_call'] === true,
      callId: fields['call_id'] as string,
      startSeq: fields['start_seq'] as number,
      endSeq: fields['end_seq'] as number,
      prompt,
      end,
      model: (fields['model'] as string | undefined) ?? '',
      policyVersion: BigInt((fields['policy_version'] as number | undefined) ?? 0),
      policyRuns: runsOf(fields['policy_runs']),
      ...expertsOf(fields, end),
      noTokenIds: false,
      images: NO_IMAGES,
      messages: this.#messages.extend((fields['messages'] as string[] | undefined) ?? []),
      reply: (fields['reply'] as string | null | undefined) ?? null,
      usageCompletionTokens: undefined,
    };
  }
}

/** Rows that do not fit the ids are left out and counted, as where an engine tells such. */
function expertsOf(fields: Fields, end: TokenNode): Pick<Call, 'experts' | 'expertsFault'> {
  const { routed_experts: told, routed_experts_fault: fault } = fields;
  const experts = told === undefined ? undefined : readExperts(told, end);
  if (told !== undefined && experts === undefined) return { experts, expertsFault: 'wrong_length' };
  return { experts, expertsFault: (fault as string | undefined) ?? '' };
}

type Check = (value: unknown, fields: Fields) => boolean;

const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isText: Check = (value) => typeof value === 'string';
const isIds: Check = (value) =>
  Array.isArray(value) && value.every((id) => Number.isInteger(id) && id >= 0 && id <= ID_MAX);
const isTexts: Check = (value) => Array.isArray(value) && value.every((one) => typeof one === 'string');
const optional =
  (check: Check): Check =>
  (value, fields) =>
    value === undefined || check(value, fields);

/** How many logprobs there are is not asked: those that are not as many as the ids are masked and counted. */
const isLogprobs: Check = (value) =>
  value === null || (Array.isArray(value) && value.every((one) => one === null || typeof one === 'number'));

const isRuns: Check = (value, fields) => {
  if (!Array.isArray(value)) return false;
  let at = 0;
  for (const run of value as { policy_version?: unknown; start?: unknown; length?: unknown }[]) {
    if (!isCount(run?.policy_version, fields) || run.start !== at || !isCount(run.length, fields))
      return false;
    at += run.length as number;
  }
  return value.length === 0 || at === (fields['sampled_ids'] as unknown[]).length;
};

const CHECKS: readonly (readonly [key: string, check: Check, must: string])[] = [
  ['call_id', (value) => isText(value, {}) && value !== '', 'a text'],
  ['start_seq', isCount, 'a whole number from 0'],
  ['end_seq', isCount, 'a whole number from 0'],
  ['prompt_ids', isIds, 'a list of ids'],
  ['sampled_ids', isIds, 'a list of ids'],
  ['logprobs', isLogprobs, 'a list of numbers and nulls, or null'],
  [
    'finish_reason',
    (value) => FINISH_REASONS.includes(value as string),
    `one of ${FINISH_REASONS.join(', ')}`,
  ],
  ['role', optional((value) => ROLES.includes(value as string)), `one of ${ROLES.join(', ')}`],
  ['trainable', optional((value) => typeof value === 'boolean'), 'true or false'],
  ['model', optional(isText), 'a text'],
  ['policy_version', optional(isCount), 'a whole number from 0'],
  ['messages', optional(isTexts), 'a list of texts'],
  ['reply', optional((value) => value === null || typeof value === 'string'), 'a text or null'],
  ['reward', optional(Number.isFinite), 'a number'],
  ['routed_experts', optional(isCallExperts), 'rows of experts'],
  ['routed_experts_fault', optional(isText), 'a text'],
  ['policy_runs', optional(isRuns), 'runs that are together as long as sampled_ids'],
];

function wrong(fields: Fields): string | undefined {
  const failed = CHECKS.find(([key, check]) => !check(fields[key], fields));
  return failed && `${failed[0]} must be ${failed[2]}`;
}

const logprobsOf = (value: unknown): Float32Array | undefined =>
  Array.isArray(value) ? Float32Array.from(value, (one: number | null) => one ?? Number.NaN) : undefined;

const runsOf = (value: unknown): PolicyRun[] =>
  ((value ?? []) as { policy_version: number; start: number; length: number }[])
    .filter(({ length }) => length > 0)
    .map(({ policy_version, start, length }) => ({ policyVersion: BigInt(policy_version), start, length }));

const isSame = (a: Call, b: Call): boolean =>
  a.prompt === b.prompt &&
  a.end === b.end &&
  a.startSeq === b.startSeq &&
  a.endSeq === b.endSeq &&
  a.finishReason === b.finishReason &&
  a.trainable === b.trainable &&
  a.role === b.role &&
  a.invalidToolCall === b.invalidToolCall &&
  a.model === b.model &&
  a.policyVersion === b.policyVersion &&
  isSameRuns(a.policyRuns, b.policyRuns) &&
  a.expertsFault === b.expertsFault &&
  isSameExperts(a.experts, b.experts) &&
  a.messages === b.messages &&
  a.reply === b.reply &&
  Buffer.compare(bytesOf(a.logprobs), bytesOf(b.logprobs)) === 0;

/** Runs begin where the one before them ends. */
const isSameRuns = (a: readonly PolicyRun[], b: readonly PolicyRun[]): boolean =>
  a.length === b.length &&
  a.every(({ policyVersion, length }, i) => policyVersion === b[i]?.policyVersion && length === b[i].length);

const bytesOf = (values: Float32Array | undefined): Uint8Array =>
  values === undefined
    ? new Uint8Array()
    : new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
