// The llm-proxy in front of real engines. run.ts sets them up and runs this: it is no part of `npm test`.
import { chosen } from './chosen.ts';
import { figuresOf } from './figures.ts';
import { modesOf, useSite } from './site.ts';
import { audit } from './suites/audit.ts';
import { behaviour } from './suites/behaviour.ts';
import { history } from './suites/history.ts';
import { records } from './suites/records.ts';

for (const engine of chosen) {
  describe(engine.title, () => {
    const siteOf = useSite(engine);
    const figures = figuresOf(engine.title);
    afterEach(function () {
      if (this.currentTest?.state === 'passed') figures.passed++;
      else figures.failed++;
    });
    for (const mode of modesOf(engine)) {
      describe(`${mode} mode`, () => {
        records(engine, () => siteOf(mode));
        behaviour(engine, () => siteOf(mode));
        history(mode, () => siteOf(mode));
        audit(engine, () => siteOf(mode));
      });
    }
  });
}
