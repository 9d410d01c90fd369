// The part of the conformance run that `npm test` does: each CLI edits a file, and one of each dialect gets over a
// reply that breaks off.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { bwrapIsThere } from '../support/runtime-prewarm.ts';
import { CASE_NAMES, type Case, type CaseName } from './cases/case.ts';
import { CASES } from './cases/index.ts';
import type { Cli } from './clis/cli.ts';
import { CLIS } from './clis/index.ts';
import { caseLine, headRow } from './matrix.ts';
import { runTrial } from './trial.ts';
import { installAll, pairsOf, Sites } from './trials.ts';
import { faultsOf, told } from './verdict.ts';

const named = (name: CaseName): Case[] => CASES.filter((one) => one.name === name);
const ofEachDialect = [...Map.groupBy(CLIS, ({ dialect }) => dialect).values()].map(
  ([first]) => first as Cli,
);
const QUICK = [...pairsOf(CLIS, named('edit')), ...pairsOf(ofEachDialect, named('cut-mid-call'))];

describe('the page of the conformance run', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/conformance.md'), 'utf8');

  it('is of the CLIs and the cases that there are', () => {
    expect(page).to.contain(headRow(CLIS));
    for (const one of CASES) expect(page).to.contain(caseLine(one));
    const cells = page.split('\n').filter((line) => /^\| [\w-]+ \|/.test(line));
    expect(cells.map((line) => line.split(' ')[1])).to.deep.equal(['case', ...CASE_NAMES]);
  });

  it('tells of no failure, and of every reason', () => {
    expect(page).to.not.match(/\*\*failed\*\*|not run/);
    for (const { unlike, cannot } of CLIS) {
      for (const one of Object.values(unlike)) expect(page).to.contain(one.why);
      for (const why of Object.values(cannot)) expect(page).to.contain(why);
    }
  });
});

// No bubblewrap, no sandbox whose only network is the proxy.
if (bwrapIsThere) {
  describe('real CLIs through the proxy', function () {
    this.timeout(600_000);
    let programs: Map<Cli, string>;
    let sites: Sites;
    before(async () => {
      const quiet = { started: () => {}, progress: () => {}, done: () => {} };
      programs = await installAll(CLIS, quiet);
      sites = await Sites.start(QUICK);
    });
    after(() => sites?.[Symbol.asyncDispose]());

    for (const { cli, one } of QUICK) {
      it(`${cli.name} ${cli.version}, ${one.name}: ${one.what}`, async () => {
        const seen = await runTrial(cli, one, programs.get(cli) as string, sites.of(one));
        expect(faultsOf(cli, one, seen), told(seen)).to.deep.equal([]);
      });
    }
  });
}
