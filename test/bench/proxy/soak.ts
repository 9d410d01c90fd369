// 200,000 calls over 2,000 sessions that come and go: the memory that the proxy holds must not grow with them.
import { type PolarCandidate, startPolar } from './candidates.ts';
import type { Bench } from './measure.ts';
import { residentMiBOf } from './processes.ts';

const CALLS_EACH = 100;
const CONNECTIONS = 25;
const WAVES = 20;

/** Resident MiB after each twentieth of the calls. */
export async function measureSoak(
  bench: Bench,
  sessions: number,
  say: (text: string) => void,
): Promise<number[]> {
  await using polar = await startPolar(bench.enginePort);
  const residentMiB: number[] = [];
  for (let wave = 0; wave < WAVES; wave++) {
    await playWave(bench, polar, sessions / WAVES);
    residentMiB.push(residentMiBOf(polar.pid ?? 0));
    say(`soak: ${(wave + 1) * (sessions / WAVES) * CALLS_EACH} calls, ${residentMiB.at(-1)?.toFixed(0)} MiB`);
  }
  return residentMiB;
}

/** Sessions that begin, make their calls and end. */
async function playWave(bench: Bench, polar: PolarCandidate, sessions: number): Promise<void> {
  const errors = await bench.play(polar, {
    sessions,
    connections: CONNECTIONS,
    body: { kind: 'small', bytes: 2_048, callsPerPath: CALLS_EACH },
    ratePerS: 0,
    rampMs: 0,
    callsEach: (sessions / CONNECTIONS) * CALLS_EACH,
    durationMs: 1e9,
  });
  if (Object.keys(errors).length > 0) throw new Error(`soak: ${JSON.stringify(errors)}`);
}
