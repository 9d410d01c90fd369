// What a rebuild read, made and left out.
import type { PolarError } from '../../common/errors.ts';
import type { Build } from '../domain/build.ts';
import type { CallLog } from '../domain/call-log.ts';
import type { CallsSource, LineFault } from './read-calls.ts';

/** Faults that are told one by one; all are counted. */
const FAULTS_TOLD_MAX = 20;

interface SessionFault {
  readonly sessionId: string | undefined;
  readonly reason: string;
  readonly message: string;
}

export class Report {
  readonly #builder: string;
  readonly #lines: readonly LineFault[];
  readonly #failed: SessionFault[] = [];
  readonly #masked = new Map<string, number>();
  readonly #expertsDropped = new Map<string, number>();
  readonly #counts = {
    sessions: 0,
    calls: 0,
    order_gaps: 0,
    traces: 0,
    sampled_tokens: 0,
    trained_tokens: 0,
    context_tokens: 0,
    trace_tokens: 0,
  };
  #buildMs = 0;

  constructor(builder: string, { faults }: CallsSource) {
    this.#builder = builder;
    this.#lines = faults;
  }

  built({ stats, traces }: Build, log: CallLog, durationMs: number): void {
    const counts = this.#counts;
    counts.sessions++;
    counts.calls += stats.calls;
    counts.order_gaps += log.gaps;
    counts.traces += stats.traces;
    counts.sampled_tokens += Number(stats.sampledTokens);
    counts.trained_tokens += Number(stats.trainedTokens);
    counts.context_tokens += Number(stats.contextTokens);
    for (const { promptIds, responseIds } of traces) {
      counts.trace_tokens += (promptIds.length + responseIds.length) / 4;
    }
    addCounts(this.#masked, stats.maskedTokens);
    addCounts(this.#expertsDropped, stats.expertsDropped);
    this.#buildMs += durationMs;
  }

  /** `calls` are those of it that were there. */
  failed(sessionId: string | undefined, calls: number, { reason, message }: PolarError): void {
    this.#counts.sessions++;
    this.#counts.calls += calls;
    this.#failed.push({ sessionId, reason, message });
  }

  /** Whether all that was given is in the traces, or masked with its reason. */
  get whole(): boolean {
    return this.#failed.length === 0 && this.#lines.every(({ kind }) => kind === 'repeated');
  }

  /** For programs. */
  toJson(): object {
    const told = this.#lines.slice(0, FAULTS_TOLD_MAX);
    return {
      builder: this.#builder,
      ...this.#counts,
      masked_tokens: Object.fromEntries([...this.#masked].sort()),
      experts_dropped: Object.fromEntries([...this.#expertsDropped].sort()),
      build_ms: Math.round(this.#buildMs),
      sessions_failed: this.#failed.length,
      lines_left_out: this.#kinds(),
      first_lines: told.map(({ line, sessionId, kind, why }) => ({ line, session_id: sessionId, kind, why })),
      first_sessions: this.#failed
        .slice(0, FAULTS_TOLD_MAX)
        .map(({ sessionId, reason, message }) => ({ session_id: sessionId, reason, message })),
    };
  }

  /** For people. */
  toText(): string {
    const { sessions, calls, traces, sampled_tokens, trained_tokens, order_gaps } = this.#counts;
    const masked = told(this.#masked);
    const experts = told(this.#expertsDropped);
    const kinds = Object.entries(this.#kinds()).map(([kind, count]) => `${count} ${kind}`);
    return [
      `${this.#builder}: ${sessions} sessions, ${calls} calls, ${traces} traces, built in ${(this.#buildMs / 1000).toFixed(2)} s`,
      `${sampled_tokens} ids sampled: ${trained_tokens} trained, masked ${masked || 'none'}`,
      ...(experts === '' ? [] : [`calls without routed experts: ${experts}`]),
      ...(order_gaps > 0 ? [`${order_gaps} numbers in the order of the calls are missing`] : []),
      ...(kinds.length > 0 ? [`lines left out: ${kinds.join(', ')}`] : []),
      ...this.#lines
        .slice(0, FAULTS_TOLD_MAX)
        .map(({ line, kind, why }) => `  line ${line}: ${kind}: ${why}`),
      ...(this.#failed.length > 0 ? [`sessions not built: ${this.#failed.length}`] : []),
      ...this.#failed
        .slice(0, FAULTS_TOLD_MAX)
        .map(({ sessionId = '(one)', reason, message }) => `  ${sessionId}: ${reason}: ${message}`),
    ].join('\n');
  }

  #kinds(): Record<string, number> {
    const kinds: Record<string, number> = {};
    for (const { kind } of this.#lines) kinds[kind] = (kinds[kind] ?? 0) + 1;
    return kinds;
  }
}

function addCounts(into: Map<string, number>, counts: Readonly<Record<string, number | bigint>>): void {
  for (const [reason, count] of Object.entries(counts)) {
    into.set(reason, (into.get(reason) ?? 0) + Number(count));
  }
}

const told = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .sort()
    .map(([reason, count]) => `${count} ${reason}`)
    .join(', ');
