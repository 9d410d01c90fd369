// A Python consumer as a process of its own, and what it and its servers cost meanwhile.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { cpuMsOf, residentMiBOf } from '../proxy/processes.ts';

const ROOT = join(import.meta.dirname, '../../..');

interface Line {
  readonly event: 'begin' | 'progress' | 'end';
  readonly tokens?: number;
  readonly total?: number;
  readonly seconds?: number;
  readonly resident_mib?: number;
}

export interface Sample {
  readonly tokens: number;
  /** Resident memory of each process, in MiB. */
  readonly residentMiB: Readonly<Record<string, number>>;
}

export interface Consumed {
  readonly tokens: number;
  /** Of all values of all arrays. */
  readonly total: number;
  readonly seconds: number;
  /** Of each process between the first and the last measured group, in ms. */
  readonly cpuMs: Readonly<Record<string, number>>;
  /** One a second. */
  readonly samples: readonly Sample[];
}

/** Run a consumer script of this folder; `servers` are the processes that work for it, by name. */
export async function consume(
  script: string,
  args: readonly (string | number)[],
  servers: Readonly<Record<string, number>>,
): Promise<Consumed> {
  const child = spawn(
    join(ROOT, '.venv/bin/python'),
    [...profileFlags(), join(import.meta.dirname, script), ...args.map(String)],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONPATH: join(ROOT, 'clients/python/src') },
    },
  );
  const pids = { ...servers, consumer: child.pid ?? 0 };
  const each = (measure: (pid: number) => number): Record<string, number> =>
    Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, measure(pid)]));
  let before = each(cpuMsOf);
  const samples: Sample[] = [];
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as Line;
    const { event, tokens = 0, total = 0, seconds = 0 } = line;
    if (event === 'begin') before = each(cpuMsOf);
    else samples.push({ tokens, residentMiB: each(residentMiBOf) });
    if (event !== 'end') continue;
    const after = each(cpuMsOf);
    child.stdin.end();
    const cpuMs = Object.fromEntries(
      Object.keys(pids).map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)]),
    );
    return { tokens, total, seconds, cpuMs, samples };
  }
  throw new Error(`${script} ended before it had told its figures`);
}

/** `POLAR_BENCH_PYTHON_FLAGS`, to profile the consumer: "-m cProfile -o FILE". */
const profileFlags = (): string[] =>
  (process.env['POLAR_BENCH_PYTHON_FLAGS'] ?? '').split(' ').filter((flag) => flag !== '');
