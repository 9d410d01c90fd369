// One stored trace, as the audit compares it with the records.
import type { CallSpan, Trace } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { unpackFloats, unpackIds } from '../../../services/common/columns.ts';

/** Places count from the first id of the prompt, so that a call's prompt begins at 0. */
export class TraceView {
  readonly number: number;
  /** Prompt, then response. */
  readonly ids: Int32Array;
  /** Ids of the prompt. */
  readonly prompt: number;
  readonly spans: readonly CallSpan[];
  readonly #mask: Uint8Array;
  readonly #logprobs: Float32Array;

  /** Throws RangeError where the columns do not fit together. */
  constructor(number: number, trace: Trace) {
    const [promptIds, responseIds] = [unpackIds(trace.promptIds), unpackIds(trace.responseIds)];
    this.#mask = trace.lossMask;
    this.#logprobs = unpackFloats(trace.logprobs);
    const lengths = [responseIds.length, this.#mask.length, this.#logprobs.length];
    if (new Set(lengths).size > 1) {
      throw new RangeError(`has ${lengths[0]} ids, ${lengths[1]} mask values and ${lengths[2]} logprobs`);
    }
    this.number = number;
    this.prompt = promptIds.length;
    this.spans = trace.spans;
    this.ids = new Int32Array(promptIds.length + responseIds.length);
    this.ids.set(promptIds);
    this.ids.set(responseIds, promptIds.length);
  }

  /** 1 = trained. The prompt never is. */
  maskAt(place: number): number {
    return this.#mask[place - this.prompt] ?? 0;
  }

  logprobAt(place: number): number {
    return this.#logprobs[place - this.prompt] ?? 0;
  }

  placeOf(span: CallSpan): number {
    return this.prompt + span.start;
  }

  /** Behind its last sampled id. */
  endOf(span: CallSpan): number {
    return this.placeOf(span) + span.length;
  }

  /** By which weights the store says that each of its ids was sampled. */
  versionsOf({ start, length, policyVersion, policyRuns }: CallSpan): number[] {
    const versions = new Array<number>(length).fill(Number(policyVersion));
    for (const run of policyRuns) {
      const from = Math.max(0, run.start - start);
      versions.fill(Number(run.policyVersion), from, Math.max(from, run.start - start + run.length));
    }
    return versions;
  }

  /** The call that sampled the id at a place, and which of its ids it is; undefined: no call did. */
  callAt(place: number): { readonly callId: string; readonly index: number } | undefined {
    const span = this.spans.find((one) => {
      const index = place - this.placeOf(one);
      return index >= 0 && index < one.length;
    });
    return span && { callId: span.callId, index: place - this.placeOf(span) };
  }

  /** Places that are trained. */
  trainedPlaces(): number[] {
    const places: number[] = [];
    for (const [i, mask] of this.#mask.entries()) if (mask === 1) places.push(this.prompt + i);
    return places;
  }
}
