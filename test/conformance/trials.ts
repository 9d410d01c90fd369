// Trials side by side: the sites that they need, and a few at once.
import type { InstallEvents } from '../../services/harness-executor/installs/install.ts';
import { type Case, scriptsOf } from './cases/case.ts';
import type { Cli } from './clis/cli.ts';
import { installed } from './installs.ts';
import type { Result } from './matrix.ts';
import { type Site, startSite } from './site.ts';
import { runTrial, type Seen } from './trial.ts';
import { faultsOf } from './verdict.ts';

export interface Pair {
  readonly cli: Cli;
  readonly one: Case;
}

/** What is tried: every CLI on every case that it can do. */
export const pairsOf = (clis: readonly Cli[], cases: readonly Case[]): Pair[] =>
  cases.flatMap((one) =>
    clis.filter(({ cannot }) => cannot[one.name] === undefined).map((cli) => ({ cli, one })),
  );

const engineOf = ({ engine, switches = {} }: Case): string => JSON.stringify([engine, switches]);

/** One site for each engine that the pairs name. */
export class Sites implements AsyncDisposable {
  /** By what `engineOf` gives. */
  readonly #sites = new Map<string, Site>();

  static async start(pairs: readonly Pair[]): Promise<Sites> {
    const sites = new Sites();
    for (const [name, own] of Map.groupBy(pairs, ({ one }) => engineOf(one))) {
      const scripts = own.flatMap(({ cli, one }) => scriptsOf(cli, one));
      const [{ one }] = own as [Pair];
      sites.#sites.set(name, await startSite(one, scripts));
    }
    return sites;
  }

  of(one: Case): Site {
    const site = this.#sites.get(engineOf(one));
    if (site === undefined) throw new Error(`no site with ${engineOf(one)}`);
    return site;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const site of this.#sites.values()) await site[Symbol.asyncDispose]();
  }
}

/** Installs what is not there: by npm one after another, by pip beside them. */
export async function installAll(clis: readonly Cli[], events: InstallEvents): Promise<Map<Cli, string>> {
  const programs = new Map<Cli, string>();
  const chains = Map.groupBy(clis, ({ adapter }) => adapter.install?.requirements).values();
  const installChain = async (chain: readonly Cli[]): Promise<void> => {
    for (const cli of chain) programs.set(cli, await installed(cli, events));
  };
  await Promise.all(chains.map(installChain));
  return programs;
}

/** Runs the pairs, `jobs` at once, in their order; `ended` hears of each. */
export async function runPairs(
  pairs: readonly Pair[],
  programs: ReadonlyMap<Cli, string>,
  sites: Sites,
  jobs: number,
  ended: (result: Result, seen: Seen) => void,
): Promise<Result[]> {
  const waiting = [...pairs];
  const results: Result[] = [];
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { cli, one } = next;
      const seen = await runTrial(cli, one, programs.get(cli) as string, sites.of(one));
      const { ms, records, traces } = seen;
      const result = { cli, one, faults: faultsOf(cli, one, seen), ms, calls: records.length, traces };
      results.push(result);
      ended(result, seen);
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return results;
}
