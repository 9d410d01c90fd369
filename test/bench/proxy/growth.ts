// A session of 200 turns that ends at 100,000 tokens: what each turn stores, keeps in memory and costs.
import { toBinary } from '@bufbuild/protobuf';
import { CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { freePort } from '../../support/nats.ts';
import { type PolarCandidate, startPolar } from './candidates.ts';
import { GrowingBody, type TurnTokens } from './conversations.ts';
import { Inspector } from './inspector.ts';
import type { Bench } from './measure.ts';
import { cpuMsOf } from './processes.ts';

const TOKENS: TurnTokens = { start: 0, observed: 350, sampled: 150 };
const TURNS = 200;
/** With the reply's 800 bytes it is 4 bytes a token. */
const OBSERVED_BYTES = 1_200;
/** Turns of all of them together are measured: those of one alone would drown in what the process does besides. */
const SESSIONS = 10;

/** Of one session, by turn. */
export interface Growth {
  readonly storedBytes: readonly number[];
  readonly usedBytes: readonly number[];
  readonly cpuMs: readonly number[];
  /** CPU of parsing that turn's request and the reply that the harness got. */
  readonly parseMs: readonly number[];
}

/** The size of all ids: what a turn adds cannot be told in less. */
export const NEW_TOKEN_BYTES = TURNS * (TOKENS.observed + TOKENS.sampled) * 4;

export async function measureGrowth(bench: Bench, say: (text: string) => void): Promise<Growth> {
  const inspect = await freePort();
  await using polar = await startPolar(bench.enginePort, [`--inspect=127.0.0.1:${inspect}`]);
  await bench.pace({ chunks: 1, gapMs: 1, turns: TOKENS });
  using inspector = await Inspector.open(inspect);
  const paths = await polar.paths(SESSIONS);
  const sessions = paths.map((path, i) => ({ path, body: new GrowingBody(1_000, OBSERVED_BYTES, i + 1) }));
  const [usedBytes, cpuMs, parseMs]: number[][] = [[], [], []];
  for (let turn = 0; turn < TURNS; turn++) {
    const before = cpuMsOf(polar.pid ?? 0);
    const texts: string[] = [];
    for (const session of sessions) texts.push(...(await play(polar, session)));
    cpuMs?.push((cpuMsOf(polar.pid ?? 0) - before) / SESSIONS);
    parseMs?.push(cpuOf(() => texts.map((text) => JSON.parse(text))) / SESSIONS);
    usedBytes?.push((await inspector.usedBytes()) / SESSIONS);
    if (turn % 50 === 49) say(`growth: turn ${turn + 1} of ${TURNS}`);
  }
  const records = await polar.proxy.records('bench-0');
  const storedBytes = records.map((record) => toBinary(CompletionSchema, record).length);
  return { storedBytes, usedBytes: usedBytes ?? [], cpuMs: cpuMs ?? [], parseMs: parseMs ?? [] };
}

/** One turn; returns request and reply. */
async function play(polar: PolarCandidate, session: { path: string; body: GrowingBody }): Promise<string[]> {
  const body = Buffer.concat(session.body.pieces);
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${polar.proxy.url}${session.path}`, { method: 'POST', headers, body });
  const reply = await answer.text();
  if (!answer.ok) throw new Error(`growth: ${answer.status} ${reply}`);
  session.body.advance();
  return [body.toString(), reply];
}

/** CPU of this thread in ms. */
function cpuOf(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
