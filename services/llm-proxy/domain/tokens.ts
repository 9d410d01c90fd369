// What an engine tells about one call at token level, collected from one body or from the chunks of a stream.
import { packFloats } from '../../common/columns.ts';
import { PolarError } from '../../common/errors.ts';
import { arrayOf, countOf, type JsonObject, type JsonValue, objectOf, textOf } from './json.ts';
import { logprobOf } from './logprob.ts';
import { POLICY_VERSION_MAX } from './policy.ts';
import { unreadLogprobs } from './reply-logprobs.ts';
import type { ToldRows } from './routed-experts.ts';

/** Replies that one call may ask for. */
export const CHOICES_MAX = 128;

/** A run of sampled ids by the weights that sampled them. */
export interface WeightSpan {
  readonly weightVersion: string;
  readonly start: number;
  readonly end: number;
}

/** Which weights sampled. */
export interface Weights {
  /** The engine's word for them, empty where it has none. */
  readonly weightVersion: string;
  /** Empty: all by `weightVersion`. */
  readonly spans: readonly WeightSpan[];
}

/** What was sampled for one choice. */
export interface Sampled {
  /** Unset: the engine has not told. A column as long as all came at once. */
  ids: number[] | Int32Array | undefined;
  /** As told so far; a hole is NaN. A column as long as all came at once. */
  logprobs: number[] | Float32Array;
  /** Its routed experts; unset: the engine told none. */
  experts?: ToldRows | undefined;
  /** Unset: those of the call. */
  weights?: Weights;
}

/** A prompt that goes on from a recorded call: all ids of that, then `tail`. */
export interface Continuation {
  /** Index of the call. */
  readonly behind: number;
  readonly tail: Int32Array;
  /** Rows of routed experts that are known of the prompt: the engine need not tell them again. */
  readonly expertRows: number;
}

export interface Tokens {
  /** Unset: the engine has not told. */
  promptIds: Int32Array | undefined;
  /** What it was given, which it need not tell then; unset: the engine made the prompt of the messages. */
  given: Continuation | undefined;
  /** Place from which on the engine was asked for its routed experts; unset: it was not. */
  expertsFrom: number | undefined;
  /** By the index of the choice. */
  readonly choices: Sampled[];
  /** The engine's word for its weights, empty where it has none. */
  weightVersion: string;
  /** Empty: all by `weightVersion`. */
  spans: readonly WeightSpan[];
}

export const noTokens = (): Tokens => ({
  promptIds: undefined,
  given: undefined,
  expertsFrom: undefined,
  choices: [],
  weightVersion: '',
  spans: [],
});

/** Whether it is known which ids the prompt had. No chat has none. */
export const knowsPrompt = ({ promptIds, given }: Tokens): boolean =>
  (promptIds !== undefined && promptIds.length > 0) || given !== undefined;

/** What is known of a choice. Throws ENGINE_ERROR for an index that no call has. */
export function sampledOf(tokens: Tokens, index: number): Sampled {
  if (index >= CHOICES_MAX) throw new PolarError('ENGINE_ERROR', `the engine made a choice ${index}`);
  let sampled = tokens.choices[index];
  if (sampled === undefined) {
    sampled = { ids: undefined, logprobs: [] };
    tokens.choices[index] = sampled;
  }
  return sampled;
}

/** Add ids that were sampled. */
export function addSampled(sampled: Sampled, ids: Int32Array): void {
  const { ids: known } = sampled;
  if (known === undefined) sampled.ids = ids;
  else {
    const all = known instanceof Int32Array ? [...known] : known;
    for (const id of ids) all.push(id);
    sampled.ids = all;
  }
}

/** Add the logprobs of a choice in the form of the OpenAI dialect. */
export function addLogprobs(sampled: Sampled, choice: JsonObject): void {
  const known = unreadLogprobs(objectOf(choice['logprobs']));
  if (known !== undefined) {
    sampled.logprobs = sampled.logprobs.length === 0 ? known : [...sampled.logprobs, ...known];
    return;
  }
  const all = logprobsOf(sampled);
  for (const entry of arrayOf(objectOf(choice['logprobs'])['content'])) {
    all.push(logprobOf(objectOf(entry)['logprob']));
  }
}

/** Those of a choice, to be added to. */
export function logprobsOf(sampled: Sampled): number[] {
  const all = sampled.logprobs instanceof Float32Array ? [...sampled.logprobs] : sampled.logprobs;
  sampled.logprobs = all;
  return all;
}

/** The ids as a column; empty where the engine has not told. */
export const idColumn = ({ ids = [] }: Sampled): Int32Array =>
  ids instanceof Int32Array ? ids : new Int32Array(ids);

/** The logprobs as a column; unset where the engine gave none or not one for each id. */
export function logprobColumn({ ids, logprobs }: Sampled): Uint8Array | undefined {
  if (ids === undefined || ids.length !== logprobs.length) return undefined;
  return packFloats(logprobs);
}

/** The trainer's number for the weights; 0 where the engine's word for them is no number that a version may be. */
export function policyVersionOf(weightVersion: string): bigint {
  const version = /^\d{1,16}$/.test(weightVersion) ? BigInt(weightVersion) : 0n;
  return version > POLICY_VERSION_MAX ? 0n : version;
}

/** The word of SGLang and vLLM for weights that nobody has named. */
const UNNAMED = 'default';

/** Whether an engine's weights are those that were published: by their word, or since nobody has named either. */
export const arePublished = ({ weightVersion, spans }: Weights, published: string): boolean =>
  weightVersion === published || (published === '' && weightVersion === UNNAMED && spans.length === 0);

/** The weights with which the first token was sampled, from SGLang's `metadata` or `meta_info`. */
export function weightVersionOf(info: JsonValue | undefined): string | undefined {
  const { weight_versions: spans, weight_version: atEnd } = objectOf(info);
  return textOf(objectOf(arrayOf(spans)[0])['version']) ?? textOf(atEnd);
}

/** Runs by weights, from `weight_versions`; empty where there is one run or none. */
export function weightSpansOf(info: JsonValue | undefined): readonly WeightSpan[] {
  const spans = arrayOf(objectOf(info)['weight_versions']).map(objectOf);
  if (spans.length < 2) return [];
  return spans.map(({ version, start, end }) => ({
    weightVersion: textOf(version) ?? '',
    start: countOf(start),
    end: countOf(end),
  }));
}
