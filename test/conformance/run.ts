// npm run test:conformance: every CLI on every case. `--cli a,b` and `--case a,b` choose; `--jobs N` at once.
// The whole run writes docs/conformance.md.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { toJson } from '@bufbuild/protobuf';
import { CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { type Case, scriptsOf } from './cases/case.ts';
import { CASES } from './cases/index.ts';
import type { Cli } from './clis/cli.ts';
import { CLIS } from './clis/index.ts';
import { type Installed, installed } from './installs.ts';
import { type Site, startSite } from './site.ts';
import { runTrial, type Seen } from './trial.ts';
import { faultsOf, told } from './verdict.ts';

const { values: flags } = parseArgs({
  options: {
    cli: { type: 'string' },
    case: { type: 'string' },
    jobs: { type: 'string', default: '4' },
    /** A folder for what each trial did and left. */
    logs: { type: 'string' },
  },
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

function chosen<T extends { readonly name: string }>(all: readonly T[], names: string | undefined): T[] {
  const wanted = names?.split(',');
  const unknown = wanted?.find((name) => !all.some((one) => one.name === name));
  if (unknown !== undefined) throw new Error(`no ${unknown}; there are ${all.map(({ name }) => name)}`);
  return all.filter(({ name }) => wanted?.includes(name) ?? true);
}

interface Work {
  readonly cli: Cli;
  readonly one: Case;
  readonly program: Installed;
  readonly site: Site;
}

async function trial({ cli, one, program, site }: Work): Promise<boolean> {
  const seen = await runTrial(cli, one, program, site);
  const faults = faultsOf(cli, one, seen);
  if (flags.logs !== undefined) keep(flags.logs, `${cli.name}-${one.name}`, seen);
  const counts = `${seconds(seen.ms)}, ${seen.records.length} calls, ${seen.traces} traces`;
  say(`${faults.length === 0 ? 'ok    ' : 'FAILED'} ${cli.name} ${one.name}: ${counts}`);
  if (faults.length > 0) say([...faults, told(seen)].join('\n').replaceAll(/^/gm, '    '));
  return faults.length === 0;
}

function keep(folder: string, name: string, seen: Seen): void {
  mkdirSync(folder, { recursive: true });
  const records = seen.records.map((record) => toJson(CompletionSchema, record));
  writeFileSync(join(folder, `${name}.json`), JSON.stringify({ ...seen, records }, undefined, 1));
}

async function main(): Promise<boolean> {
  const clis = chosen(CLIS, flags.cli);
  const cases = chosen(CASES, flags.case);
  const programs = new Map<string, Installed>();
  for (const cli of clis) {
    programs.set(
      cli.name,
      await installed(cli, {
        started: (name, version) => say(`installing ${name} ${version}`),
        progress: () => {},
        done: (name, ms) => say(`installed ${name} in ${seconds(ms)}`),
      }),
    );
  }
  const scripts = clis.flatMap((cli) => cases.flatMap((one) => scriptsOf(cli, one)));
  await using sglang = await startSite('sglang', scripts);
  await using vllm = await startSite('vllm', scripts);
  const work = cases.flatMap((one) =>
    clis
      .filter(({ cannot }) => cannot[one.name] === undefined)
      .map((cli) => ({
        cli,
        one,
        program: programs.get(cli.name) as Installed,
        site: { sglang, vllm }[one.engine],
      })),
  );
  const results: boolean[] = [];
  const worker = async (): Promise<void> => {
    for (let next = work.shift(); next !== undefined; next = work.shift()) results.push(await trial(next));
  };
  await Promise.all(Array.from({ length: Number(flags.jobs) }, worker));
  return results.every((passed) => passed);
}

if (!(await main())) process.exitCode = 1;
