// The load generator: a process that plays plans against an address and answers with what it measured.
import { connect, type Socket } from 'node:net';
import process from 'node:process';
import { GrowingBody, SmallBody, STAMP, STAMP_DIGITS } from './conversations.ts';
import { MessageReader, nowUs } from './http1.ts';
import { type Distribution, distributionOf } from './statistics.ts';

/** Calls of one kind. Each connection takes its paths in turn, so that the calls of a session come one by one. */
export interface Plan {
  readonly port: number;
  readonly paths: readonly string[];
  /** The key that calls are sent with. */
  readonly key: string;
  readonly connections: number;
  readonly body: SmallPlan | GrowingPlan;
  /** Calls a second of all connections together, by the clock; 0: each connection calls as soon as it is answered. */
  readonly ratePerS: number;
  /** No call begins after it. */
  readonly durationMs: number;
  /** Between the first calls of one connection and the next. */
  readonly rampMs: number;
  /** Calls of a connection; then it is done. */
  readonly callsEach: number;
}

export interface SmallPlan {
  readonly kind: 'small' | 'stream';
  readonly bytes: number;
  /** Calls with a path before a connection takes its next one. */
  readonly callsPerPath: number;
}

export interface GrowingPlan {
  readonly kind: 'growing';
  readonly startBytes: number;
  readonly turnBytes: number;
  /** Of a conversation, before it begins anew. */
  readonly turns: number;
}

export interface Outcome {
  readonly calls: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly wallMs: number;
  readonly latencyMs: Distribution;
  /** Streams: to the first chunk; each chunk from the engine's write to its arrival; and how many came. */
  readonly firstChunkMs: Distribution;
  readonly chunkDelayMs: Distribution;
  readonly chunks: number;
}

const CALL_MS_MAX = 120_000;

class Connection {
  readonly #plan: Plan;
  readonly #onPiece: ((piece: Buffer) => void) | undefined;
  #socket: Socket | undefined;
  #reader = new MessageReader();
  #done: PromiseWithResolvers<string> | undefined;

  constructor(plan: Plan, onPiece?: (piece: Buffer) => void) {
    this.#plan = plan;
    this.#onPiece = onPiece;
  }

  /** One call; answers with its status, or the error's code. */
  async call(path: string, body: readonly Buffer[]): Promise<string> {
    if (this.#socket === undefined || this.#socket.destroyed) this.#socket = this.#open();
    const socket = this.#socket;
    const done = Promise.withResolvers<string>();
    this.#done = done;
    const length = body.reduce((sum, piece) => sum + piece.length, 0);
    socket.cork();
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nauthorization: Bearer ${this.#plan.key}\r\ncontent-length: ${length}\r\n\r\n`,
      'latin1',
    );
    for (const piece of body) socket.write(piece);
    socket.uncork();
    const timer = setTimeout(() => socket.destroy(new Error('timeout')), CALL_MS_MAX);
    try {
      return await done.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#socket?.destroy();
  }

  #open(): Socket {
    this.#reader = new MessageReader();
    const socket = connect(this.#plan.port, '127.0.0.1').setNoDelay(true);
    socket.on('error', (error: NodeJS.ErrnoException) => this.#done?.resolve(error.code ?? error.message));
    socket.on('close', () => this.#done?.resolve('closed'));
    const onPiece = this.#onPiece ?? (() => {});
    const onEnd = (): void => this.#done?.resolve(this.#reader.head.slice(9, 12));
    socket.on('data', (bytes: Buffer) => this.#reader.push(bytes, onPiece, onEnd));
    return socket;
  }
}

/** Finds the engine's stamps in what comes, wherever it was cut. */
class StampReader {
  readonly delaysMs: number[];
  /** Of the stream that is being read. */
  firstUs = 0;
  #carry = '';

  constructor(delaysMs: number[]) {
    this.delaysMs = delaysMs;
  }

  push(piece: Buffer): void {
    const text = this.#carry + piece.toString('latin1');
    const arrivedUs = nowUs();
    let from = 0;
    for (let at = text.indexOf(STAMP); at >= 0; at = text.indexOf(STAMP, from)) {
      const end = at + STAMP.length + STAMP_DIGITS;
      if (end > text.length) break;
      this.delaysMs.push((arrivedUs - Number(text.slice(at + STAMP.length, end))) / 1000);
      if (this.firstUs === 0) this.firstUs = arrivedUs;
      from = end;
    }
    this.#carry = text.slice(Math.max(from, text.length - STAMP.length - STAMP_DIGITS + 1));
  }
}

class Tally {
  readonly latenciesMs: number[] = [];
  readonly firstsMs: number[] = [];
  readonly delaysMs: number[] = [];
  readonly errors: Record<string, number> = {};
  readonly #startUs = nowUs();

  add(status: string, sinceUs: number): void {
    if (status === '200') this.latenciesMs.push((nowUs() - sinceUs) / 1000);
    else this.errors[status] = (this.errors[status] ?? 0) + 1;
  }

  get outcome(): Outcome {
    return {
      calls: this.latenciesMs.length,
      errors: this.errors,
      wallMs: (nowUs() - this.#startUs) / 1000,
      latencyMs: distributionOf(this.latenciesMs),
      firstChunkMs: distributionOf(this.firstsMs),
      chunkDelayMs: distributionOf(this.delaysMs),
      chunks: this.delaysMs.length,
    };
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What a connection sends, call after call; undefined: it is done. */
type Source = () => { path: string; pieces: readonly Buffer[]; answered: () => void } | undefined;

function smallSource(plan: Plan, body: SmallPlan, index: number): Source {
  const small = new SmallBody(body.bytes, body.kind === 'stream');
  const own = plan.paths.filter((_, i) => i % plan.connections === index % plan.paths.length);
  let n = 0;
  return () => {
    if (n >= plan.callsEach) return undefined;
    const path = own[Math.floor(n / body.callsPerPath) % own.length] as string;
    n++;
    return { path, pieces: [small.numbered(n * plan.connections + index)], answered: () => {} };
  };
}

interface Growing {
  readonly path: string;
  readonly body: GrowingBody;
}

const conversations = (plan: Plan, { startBytes, turnBytes }: GrowingPlan): Growing[] =>
  plan.paths.map((path, i) => ({ path, body: new GrowingBody(startBytes, turnBytes, i + 1) }));

/** All sessions by turns, for as long as calls begin. */
function growingSource(sessions: readonly Growing[], turns: number): Source {
  let n = 0;
  return () => {
    const { path, body } = sessions[n++ % sessions.length] as Growing;
    const answered = (): void => {
      body.advance();
      if (body.turn % turns === 0) body.beginAnew();
    };
    return { path, pieces: body.pieces, answered };
  };
}

async function play(plan: Plan, source: Source, index: number, tally: Tally, endUs: number): Promise<void> {
  const stamps = plan.body.kind === 'stream' ? new StampReader(tally.delaysMs) : undefined;
  const connection = new Connection(plan, stamps && ((piece) => stamps.push(piece)));
  const gapUs = plan.ratePerS === 0 ? 0 : (plan.connections / plan.ratePerS) * 1e6;
  await pause(index * plan.rampMs);
  let dueUs = nowUs() + (gapUs * index) / plan.connections;
  for (let next = source(); next !== undefined && nowUs() < endUs; next = source()) {
    // By the clock a call counts from when it was due if it waited for the one before it: not if the timer was late.
    const late = gapUs > 0 && nowUs() > dueUs;
    if (gapUs > 0 && !late) await pause((dueUs - nowUs()) / 1000);
    const sinceUs = late ? dueUs : nowUs();
    if (stamps !== undefined) stamps.firstUs = 0;
    const status = await connection.call(next.path, next.pieces);
    tally.add(status, sinceUs);
    if (stamps !== undefined && stamps.firstUs > 0) tally.firstsMs.push((stamps.firstUs - sinceUs) / 1000);
    if (status === '200') next.answered();
    dueUs += gapUs;
  }
  connection.close();
}

/** A growing session's first call is made before the measurement: only the turns after it are late turns. */
async function prepared(plan: Plan): Promise<(index: number) => Source> {
  const { body } = plan;
  if (body.kind !== 'growing') return (index) => smallSource(plan, body, index);
  const sessions = conversations(plan, body);
  const source = growingSource(sessions, body.turns);
  const firsts = sessions.map(source);
  await play(plan, () => firsts.shift(), 0, new Tally(), Number.POSITIVE_INFINITY);
  return () => source;
}

async function run(plans: readonly Plan[]): Promise<void> {
  const sources = await Promise.all(plans.map(prepared));
  go = Promise.withResolvers();
  process.send?.('ready');
  await go.promise;
  const outcomes = await Promise.all(
    plans.map(async (plan, p) => {
      const tally = new Tally();
      const endUs = nowUs() + plan.durationMs * 1000;
      const each = Array.from({ length: plan.connections }, (_, i) =>
        play(plan, (sources[p] as (index: number) => Source)(i), i, tally, endUs),
      );
      await Promise.all(each);
      return tally.outcome;
    }),
  );
  process.send?.(outcomes);
}

/** The parent sends plans, is told `ready`, sends anything, and gets the outcomes. */
let go = Promise.withResolvers<void>();
process.on('disconnect', () => process.exit());
process.on('message', (message: readonly Plan[] | 'go') => {
  if (message === 'go') go.resolve();
  else void run(message);
});
