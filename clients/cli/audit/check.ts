// A stored trajectory against the records that it was made of: the law of conservation, and the served context of each
// call. Pure; call by call, since all prompts of a long session together are many times its records.
import type { CallSpan, Trajectory } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import {
  idReason,
  maskedByRecord,
  type Policies,
  type RecordedCall,
  sampledTokens,
  versionsOf,
  wholeReason,
} from './record.ts';
import { TraceView } from './trace-view.ts';

/** What breaks a law. */
export interface Finding {
  readonly kind:
    | 'conservation'
    | 'usage'
    | 'stats'
    | 'columns'
    | 'context'
    | 'sampled_ids'
    | 'mask'
    | 'logprob'
    | 'span'
    | 'not_in_traces'
    | 'twice'
    | 'unknown_call'
    | 'records'
    | 'trajectory';
  readonly message: string;
  readonly call_id?: string;
  /** Number of the trace, from 0. */
  readonly trace?: number;
  /** Of an id: in the call's prompt for `context`, else in what it sampled. */
  readonly index?: number;
}

/** Counts of a session by its records, and what does not fit them. */
export interface Account {
  readonly calls: number;
  readonly sampled: number;
  readonly trained: number;
  /** By reason, as the trajectory says. */
  readonly masked: Readonly<Record<string, number>>;
  /** What the engine counted; where it gave no count, its ids. */
  readonly engine_usage: number;
  readonly calls_without_usage: number;
  readonly findings: readonly Finding[];
  /** Those above FINDINGS_MAX. */
  readonly findings_more: number;
}

/** Further ones of a session are counted only. */
const FINDINGS_MAX = 100;

interface Place {
  readonly trace: TraceView;
  readonly span: CallSpan;
}

export class SessionAudit {
  readonly traces: readonly TraceView[];
  readonly #trajectory: Trajectory | undefined;
  readonly #policies: Policies;
  readonly #places: Map<string, Place[]>;
  readonly #seen = new Set<string>();
  readonly #findings: Finding[] = [];
  /** `trace place` of ids that differ: later calls have the same id before them. */
  readonly #different = new Set<string>();
  #more = 0;
  #sampled = 0;
  #trained = 0;
  #usage = 0;
  #withoutUsage = 0;
  /** Ids that the records alone keep from being trained. */
  readonly #mustMask = new Map<string, number>();
  /** Of trained ids that the policy sampled. */
  #versionMin = Number.POSITIVE_INFINITY;
  #versionMax = 0;
  /** Ids in no trace that nothing on the record keeps from being trained; a policy may, and counts them as masked. */
  #leftOut: { callId: string; count: number }[] = [];

  /** Without a trajectory, the records alone are counted. */
  constructor(trajectory?: Trajectory) {
    this.#trajectory = trajectory;
    this.#policies = trajectory?.builderConfig ?? {};
    this.traces = (trajectory?.traces ?? []).flatMap((trace, number) => {
      try {
        return new TraceView(number, trace);
      } catch (error) {
        this.#find({ kind: 'columns', trace: number, message: (error as Error).message });
        return [];
      }
    });
    const places = this.traces.flatMap((trace) => trace.spans.map((span) => ({ trace, span })));
    this.#places = Map.groupBy(places, ({ span }) => span.callId);
    for (const trace of this.traces) this.#checkContext(trace);
  }

  /** The next record, in any order. */
  add(call: RecordedCall): void {
    const count = sampledTokens(call);
    this.#seen.add(call.call_id);
    this.#sampled += count;
    this.#usage += call.usage?.completion_tokens ?? count;
    if (call.usage === null) this.#withoutUsage++;
    else if (call.usage.completion_tokens !== count) {
      const message = `${count} ids are recorded, the engine counted ${call.usage.completion_tokens}`;
      this.#find({ kind: 'usage', call_id: call.call_id, message });
    }
    if (this.#trajectory === undefined) return;
    const [reason, masked] = maskedByRecord(call, this.#policies);
    this.#mustMask.set(reason, (this.#mustMask.get(reason) ?? 0) + masked);
    const [place, ...others] = this.#places.get(call.call_id) ?? [];
    for (const { trace } of others) {
      const message = `is in trace ${place?.trace.number}, too`;
      this.#find({ kind: 'twice', call_id: call.call_id, trace: trace.number, message });
    }
    if (place === undefined) this.#leaveOut(call);
    else this.#compare(call, place);
  }

  /** When all records were added. */
  finish(): Account {
    for (const callId of this.#places.keys()) {
      if (this.#seen.has(callId)) continue;
      this.#find({ kind: 'unknown_call', call_id: callId, message: 'is in a trace, but was never recorded' });
    }
    const masked = this.#checkStats();
    return {
      calls: this.#seen.size,
      sampled: this.#sampled,
      trained: this.#trained,
      masked,
      engine_usage: this.#usage,
      calls_without_usage: this.#withoutUsage,
      findings: this.#findings,
      findings_more: this.#more,
    };
  }

  /** What no call sampled is context: never trained, without logprob, and a call behind it was served it. */
  #checkContext(trace: TraceView): void {
    const behind = trace.ids.length - Math.max(0, ...trace.spans.map((span) => trace.endOf(span)));
    if (behind > 0) {
      const message = `${behind} ids stand behind its last call: no call was served them`;
      this.#find({ kind: 'context', trace: trace.number, message });
    }
    const sampled = new Uint8Array(trace.ids.length);
    for (const span of trace.spans) sampled.fill(1, trace.placeOf(span), trace.endOf(span));
    for (let place = trace.prompt; place < trace.ids.length; place++) {
      if (sampled[place] === 1) continue;
      const at = { trace: trace.number, index: place - trace.prompt };
      if (trace.maskAt(place) !== 0) {
        this.#trained++;
        this.#find({ kind: 'mask', ...at, message: 'a response id that no call sampled is trained' });
      }
      if (trace.logprobAt(place) !== 0) {
        this.#find({ kind: 'logprob', ...at, message: 'a response id that no call sampled has a logprob' });
      }
    }
  }

  #leaveOut(call: RecordedCall): void {
    if (wholeReason(call, this.#policies) !== undefined) return;
    const count = call.sampled_ids.filter((_, i) => idReason(call, i) === undefined).length;
    if (count > 0) this.#leftOut.push({ callId: call.call_id, count });
  }

  #compare(call: RecordedCall, { trace, span }: Place): void {
    const start = trace.placeOf(span);
    const at = { call_id: call.call_id, trace: trace.number };
    if (start !== call.prompt_ids.length) {
      const message = `stands behind ${start} ids, but was served ${call.prompt_ids.length}`;
      this.#find({ kind: 'context', ...at, message });
    }
    for (const [i, id] of call.prompt_ids.entries()) this.#sameId(call.call_id, trace, i, id, i);
    const ends = trace.endOf(span) === trace.ids.length;
    const left = call.sampled_ids.length - span.length;
    // A trace is cut at its end alone.
    if (left < 0 || (left > 0 && !ends) || span.finishReason !== call.finish_reason) {
      const stored = `${span.length} ids, ${span.finishReason}`;
      const message = `the store says ${stored}; the record ${call.sampled_ids.length} ids, ${call.finish_reason}`;
      this.#find({ kind: 'span', ...at, message });
    }
    this.#checkVersions(call, { trace, span });
    const whole = wholeReason(call, this.#policies);
    for (let i = 0; i < span.length; i++) {
      this.#sameId(call.call_id, trace, start + i, call.sampled_ids[i], i);
      this.#checkTrained(call, { trace, span }, i, whole ?? idReason(call, i));
    }
  }

  #checkVersions(call: RecordedCall, { trace, span }: Place): void {
    const [stored, recorded] = [trace.versionsOf(span), versionsOf(call)];
    const differs = stored.findIndex((version, i) => version !== recorded[i]);
    const index = differs < 0 ? undefined : differs;
    const [told, known] =
      index === undefined
        ? [Number(span.policyVersion), call.policy_version]
        : [stored[index], recorded[index] ?? 'none'];
    if (told !== known) {
      const at = { call_id: call.call_id, trace: trace.number, ...(index !== undefined && { index }) };
      const message = `the store says policy version ${told}, the record ${known}`;
      this.#find({ kind: 'span', ...at, message });
    }
    // That of a frozen model says nothing of how old the policy was.
    if (!call.trainable) return;
    for (const [i, version] of recorded.slice(0, span.length).entries()) {
      if (trace.maskAt(trace.placeOf(span) + i) !== 1) continue;
      this.#versionMin = Math.min(this.#versionMin, version);
      this.#versionMax = Math.max(this.#versionMax, version);
    }
  }

  /** One id of the store against the record; named after the call that sampled it, if any. */
  #sameId(
    callId: string,
    trace: TraceView,
    place: number,
    recorded: number | undefined,
    index: number,
  ): void {
    const stored = trace.ids[place];
    if (stored === recorded) return;
    const key = `${trace.number} ${place}`;
    if (this.#different.has(key)) return;
    this.#different.add(key);
    const sampled = trace.callAt(place);
    const message = `the store has id ${stored ?? 'none'}, the record ${recorded ?? 'none'}`;
    this.#find({
      kind: sampled === undefined ? 'context' : 'sampled_ids',
      call_id: sampled?.callId ?? callId,
      trace: trace.number,
      index: sampled?.index ?? index,
      message,
    });
  }

  #checkTrained(call: RecordedCall, { trace, span }: Place, index: number, reason: string | undefined): void {
    const place = trace.placeOf(span) + index;
    const [mask, logprob] = [trace.maskAt(place), trace.logprobAt(place)];
    const at = { call_id: call.call_id, trace: trace.number, index };
    this.#trained += mask;
    if (mask === 1 && reason !== undefined) {
      this.#find({ kind: 'mask', ...at, message: `is trained, but must not be: ${reason}` });
    } else if (mask === 0 && (reason === undefined ? span.maskedReason === '' : !hasReason(span, reason))) {
      this.#find({ kind: 'mask', ...at, message: `is masked without ${reason ?? 'a reason'}` });
    }
    const recorded = mask === 1 ? (call.logprobs?.[index] ?? 0) : 0;
    if (logprob !== Math.fround(recorded)) {
      this.#find({ kind: 'logprob', ...at, message: `the store has ${logprob}, the record ${recorded}` });
    }
  }

  /** What the trajectory tells of itself. Returns those of masked ids. */
  #checkStats(): Record<string, number> {
    const { stats, policyVersionMin, policyVersionMax } = this.#trajectory ?? {};
    if (stats === undefined) return {};
    const masked = Object.fromEntries(
      Object.entries(stats.maskedTokens).map(([reason, count]) => [reason, Number(count)]),
    );
    const allMasked = Object.values(masked).reduce((sum, count) => sum + count, 0);
    if (this.#sampled !== this.#trained + allMasked) {
      const message = `${this.#sampled} ids were sampled, but ${this.#trained} are trained and ${allMasked} are masked`;
      this.#find({ kind: 'conservation', message });
      for (const { callId, count } of this.#leftOut) {
        const message = `${count} ids that may be trained are in no trace`;
        this.#find({ kind: 'not_in_traces', call_id: callId, message });
      }
    }
    this.#equal('calls', stats.calls, this.#seen.size);
    this.#equal('traces', stats.traces, this.#trajectory?.traces.length ?? 0);
    this.#equal('sampled ids', Number(stats.sampledTokens), this.#sampled);
    this.#equal('trained ids', Number(stats.trainedTokens), this.#trained);
    this.#equal('ids of context', Number(stats.contextTokens), this.#contextIds());
    for (const [reason, count] of this.#mustMask) {
      const told = masked[reason] ?? 0;
      if (told < count) this.#equal(`ids masked as ${reason}`, told, count);
    }
    this.#version('smallest', policyVersionMin, this.#versionMax === 0 ? 0 : this.#versionMin);
    this.#version('largest', policyVersionMax, this.#versionMax);
    return masked;
  }

  /** In the traces, of no call. */
  #contextIds(): number {
    const sampled = this.traces.flatMap(({ spans }) => spans).reduce((sum, { length }) => sum + length, 0);
    return this.traces.reduce((sum, { ids }) => sum + ids.length, 0) - sampled;
  }

  /** The filters of a stream go by it. */
  #version(which: string, told: bigint | undefined, counted: number): void {
    if (Number(told ?? 0) === counted) return;
    const message = `the trajectory tells ${told} as its ${which} policy version, it is ${counted}`;
    this.#find({ kind: 'stats', message });
  }

  #equal(what: string, told: number, counted: number): void {
    if (told === counted) return;
    this.#find({ kind: 'stats', message: `the trajectory tells of ${told} ${what}, there are ${counted}` });
  }

  #find(finding: Finding): void {
    if (this.#findings.length < FINDINGS_MAX) this.#findings.push(finding);
    else this.#more++;
  }
}

const hasReason = ({ maskedReason }: CallSpan, reason: string): boolean =>
  maskedReason.split(',').includes(reason);
