// The llm-proxy in front of real engines. run.ts sets them up and runs this: it is no part of `npm test`.
import { chosen } from './chosen.ts';
import { figuresOf } from './figures.ts';
import type { RealEngine } from './kinds/engine.ts';
import { modesOf, useSite } from './site.ts';
import { audit } from './suites/audit.ts';
import { behaviour } from './suites/behaviour.ts';
import { history } from './suites/history.ts';
import { parsed } from './suites/parsed.ts';
import { records } from './suites/records.ts';

/** The tests of a suite count for the engine. */
function counted(engine: RealEngine): void {
  const figures = figuresOf(engine.title);
  afterEach(function () {
    if (this.currentTest?.state === 'passed') figures.passed++;
    else figures.failed++;
  });
}

for (const engine of chosen) {
  describe(engine.title, () => {
    const siteOf = useSite(engine);
    counted(engine);
    for (const mode of modesOf(engine)) {
      describe(`${mode} mode`, () => {
        records(engine, () => siteOf(mode));
        behaviour(engine, () => siteOf(mode));
        history(mode, () => siteOf(mode));
        audit(engine, () => siteOf(mode));
      });
    }
  });
  if (engine.parsers === undefined) continue;
  describe(`${engine.title} with parsers`, () => {
    const siteOf = useSite(engine, engine.parsers, ['text', 'token']);
    counted(engine);
    parsed(siteOf);
  });
}
