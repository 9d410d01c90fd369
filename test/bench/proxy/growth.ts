// A session of 200 turns that ends at 100,000 tokens, in token mode at a scripted engine with a real tokenizer: what each
// turn stores, keeps in memory and costs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { toBinary } from '@bufbuild/protobuf';
import { type Completion, CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { freePort } from '../../support/nats.ts';
import { CANDIDATES, type Candidate, type PolarCandidate, startPolar } from './candidates.ts';
import { GrowingBody, REPLY_TEXT } from './conversations.ts';
import { Inspector } from './inspector.ts';
import { cpuMsOf, systemMsOf } from './processes.ts';

const TOKEN_MODE = { kind: 'sglang', mode: 'token' } as const;
const ENGINE = new URL('../../../examples/scripted-engine/main.ts', import.meta.url).pathname;
const TURNS = 200;
/** With the reply of 800 bytes about 500 tokens a turn. */
const OBSERVED_BYTES = 2_350;
/** Turns of all of them together are measured: those of one alone would drown in what the process does besides. */
const SESSIONS = 3;
/** Memory is read after a collection, which costs the turns that come next: in another proxy, and not in each turn. */
export const TURNS_A_READING = 20;

/** Played before, so that the code is compiled: a late turn behind 800 calls was seen to cost 1.5 times one behind 16,000. */
const WARM_SESSIONS = 800;
const WARM_TURNS = 20;

/** Of one session, by turn. */
export interface Growth {
  readonly storedBytes: readonly number[];
  /** From the first turn on, each TURNS_A_READING. */
  readonly usedBytes: readonly number[];
  readonly cpuMs: readonly number[];
  /** Of it that in the kernel, in ticks of 10 ms. */
  readonly systemMs: readonly number[];
  /** CPU of parsing, once, that turn's request and the reply that the harness got. */
  readonly parseMs: readonly number[];
  /** CPU of a bare pass-through for the same requests. */
  readonly passedMs: readonly number[];
  /** Ids of the last prompt and what was sampled behind it. */
  readonly tokens: number;
  /** Calls in token mode. */
  readonly inTokenMode: number;
}

type Say = (text: string) => void;

/** `enginePort` is that of the stand-in, for the pass-through. */
export async function measureGrowth(enginePort: number, say: Say): Promise<Growth> {
  await using engine = await scriptedEngine();
  await using polar = await startPolar(engine.port, TOKEN_MODE);
  const sessions = await sessionsOf(polar, SESSIONS);
  for (const session of await sessionsOf(polar, WARM_SESSIONS)) {
    for (let turn = 0; turn < WARM_TURNS; turn++) await play(polar.port, session);
  }
  const costs = await costsOf(polar, sessions, say);
  const usedBytes = await memoryWith(engine.port, say);
  const records = await polar.proxy.records('bench-0');
  return { ...costs, usedBytes, passedMs: await passedBy(enginePort, say), ...storedOf(records) };
}

type Costs = Pick<Growth, 'cpuMs' | 'systemMs' | 'parseMs'>;

async function costsOf({ port, pid = 0 }: Candidate, sessions: readonly Session[], say: Say): Promise<Costs> {
  const [cpuMs, systemMs, parseMs]: [number[], number[], number[]] = [[], [], []];
  for (let turn = 0; turn < TURNS; turn++) {
    const before = { cpu: cpuMsOf(pid), system: systemMsOf(pid) };
    const texts: string[] = [];
    for (const session of sessions) texts.push(...(await play(port, session)));
    cpuMs.push((cpuMsOf(pid) - before.cpu) / sessions.length);
    systemMs.push((systemMsOf(pid) - before.system) / sessions.length);
    parseMs.push(parseMsOf(texts) / sessions.length);
    if (turn % 50 === 49) say(`growth: CPU, turn ${turn + 1} of ${TURNS}`);
  }
  return { cpuMs, systemMs, parseMs };
}

async function memoryWith(enginePort: number, say: Say): Promise<number[]> {
  const inspect = await freePort();
  const nodeFlags = [`--inspect=127.0.0.1:${inspect}`];
  await using polar = await startPolar(enginePort, { ...TOKEN_MODE, nodeFlags });
  using inspector = await Inspector.open(inspect);
  const [session] = (await sessionsOf(polar, 1)) as [Session];
  const usedBytes: number[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    await play(polar.port, session);
    if (turn === 0 || turn % TURNS_A_READING === TURNS_A_READING - 1) {
      usedBytes.push(await inspector.usedBytes());
    }
  }
  say('growth: memory');
  return usedBytes;
}

async function passedBy(enginePort: number, say: Say): Promise<readonly number[]> {
  await using passThrough = await CANDIDATES['node-http'](enginePort);
  const [path = ''] = await passThrough.paths(1);
  const sessions = bodies(SESSIONS).map((body) => ({ path, body }));
  for (const session of bodies(WARM_SESSIONS)) {
    for (let turn = 0; turn < WARM_TURNS; turn++) await play(passThrough.port, { path, body: session });
  }
  return (await costsOf(passThrough, sessions, say)).cpuMs;
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
  return bodies(count).map((body, i) => ({ path: paths[i] as string, body }));
}

const bodies = (count: number): GrowingBody[] =>
  Array.from({ length: count }, (_, i) => new GrowingBody(1_000, OBSERVED_BYTES, i + 1));

/** One turn; returns request and reply. */
async function play(port: number, session: Session): Promise<string[]> {
  const body = Buffer.concat(session.body.pieces);
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`http://127.0.0.1:${port}${session.path}`, { method: 'POST', headers, body });
  const reply = await answer.text();
  if (!answer.ok) throw new Error(`growth: ${answer.status} ${reply}`);
  session.body.advance(JSON.parse(reply).choices[0].message.content);
  return [body.toString(), reply];
}

/** Once, as a server would: not the best of many, which finds everything compiled and in the caches. */
function parseMsOf(texts: readonly string[]): number {
  const before = process.cpuUsage();
  for (const text of texts) JSON.parse(text);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
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
