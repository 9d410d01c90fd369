// A session of 200 turns that ends at 100,000 tokens, in token mode at a scripted engine with a real tokenizer: what each
// turn stores, keeps in memory and costs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { toBinary } from '@bufbuild/protobuf';
import { type Completion, CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { freePort } from '../../support/nats.ts';
import { type PolarCandidate, startPolar } from './candidates.ts';
import { GrowingBody, REPLY_TEXT } from './conversations.ts';
import { Inspector } from './inspector.ts';
import { cpuMsOf } from './processes.ts';

const ENGINE = new URL('../../../examples/scripted-engine/main.ts', import.meta.url).pathname;
const TURNS = 200;
/** With the reply of 800 bytes about 500 tokens a turn. */
const OBSERVED_BYTES = 2_350;
/** Turns of all of them together are measured: those of one alone would drown in what the process does besides. */
const SESSIONS = 3;

/** Played before, so that the code is compiled. */
const WARM_SESSIONS = 40;
const WARM_TURNS = 20;

/** Of one session, by turn. */
export interface Growth {
  readonly storedBytes: readonly number[];
  readonly usedBytes: readonly number[];
  readonly cpuMs: readonly number[];
  /** Time of parsing that turn's request and the reply that the harness got. */
  readonly parseMs: readonly number[];
  /** Ids of the last prompt and what was sampled behind it. */
  readonly tokens: number;
  /** Calls in token mode. */
  readonly inTokenMode: number;
}

export async function measureGrowth(say: (text: string) => void): Promise<Growth> {
  await using engine = await scriptedEngine();
  const inspect = await freePort();
  const nodeFlags = [`--inspect=127.0.0.1:${inspect}`];
  await using polar = await startPolar(engine.port, { kind: 'sglang', mode: 'token', nodeFlags });
  using inspector = await Inspector.open(inspect);
  const sessions = await sessionsOf(polar, SESSIONS);
  for (const session of await sessionsOf(polar, WARM_SESSIONS)) {
    for (let turn = 0; turn < WARM_TURNS; turn++) await play(polar, session);
  }
  const usedBytes: number[] = [];
  const cpuMs: number[] = [];
  const parseMs: number[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const before = cpuMsOf(polar.pid ?? 0);
    const texts: string[] = [];
    for (const session of sessions) texts.push(...(await play(polar, session)));
    cpuMs.push((cpuMsOf(polar.pid ?? 0) - before) / SESSIONS);
    parseMs.push(parseMsOf(texts) / SESSIONS);
    usedBytes.push((await inspector.usedBytes()) / SESSIONS);
    if (turn % 50 === 49) say(`growth: turn ${turn + 1} of ${TURNS}`);
  }
  const records = await polar.proxy.records('bench-0');
  return { usedBytes, cpuMs, parseMs, ...storedOf(records) };
}

function storedOf(records: readonly Completion[]): Pick<Growth, 'storedBytes' | 'tokens' | 'inTokenMode'> {
  const last = records.at(-1);
  return {
    storedBytes: records.map((record) => toBinary(CompletionSchema, record).length),
    tokens: (last?.promptLength ?? 0) + (last?.sampledIds.byteLength ?? 0) / 4,
    inTokenMode: records.filter(({ mode }) => mode === 'token').length,
  };
}

interface Session {
  readonly path: string;
  readonly body: GrowingBody;
}

async function sessionsOf(polar: PolarCandidate, count: number): Promise<Session[]> {
  const paths = await polar.paths(count);
  return paths.map((path, i) => ({ path, body: new GrowingBody(1_000, OBSERVED_BYTES, i + 1) }));
}

/** One turn; returns request and reply. */
async function play(polar: PolarCandidate, session: Session): Promise<string[]> {
  const body = Buffer.concat(session.body.pieces);
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${polar.proxy.url}${session.path}`, { method: 'POST', headers, body });
  const reply = await answer.text();
  if (!answer.ok) throw new Error(`growth: ${answer.status} ${reply}`);
  session.body.advance(JSON.parse(reply).choices[0].message.content);
  return [body.toString(), reply];
}

/** Of several times the shortest: that in which nothing else ran. */
const PARSED_TIMES = 7;

function parseMsOf(texts: readonly string[]): number {
  const times = Array.from({ length: PARSED_TIMES }, () => {
    const from = performance.now();
    for (const text of texts) JSON.parse(text);
    return performance.now() - from;
  });
  return Math.min(...times);
}

interface ScriptedEngine extends AsyncDisposable {
  readonly port: number;
}

/** Says the same in every turn, as SGLang. */
async function scriptedEngine(): Promise<ScriptedEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-bench-engine-'));
  const script = join(folder, 'script.yaml');
  writeFileSync(script, JSON.stringify({ variants: [{ name: 'talks', steps: [{ text: REPLY_TEXT }] }] }));
  const args = [ENGINE, '--dialect', 'sglang', '--script', script];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  return {
    port: Number(new URL((JSON.parse(line) as { url: string }).url).port),
    async [Symbol.asyncDispose]() {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
