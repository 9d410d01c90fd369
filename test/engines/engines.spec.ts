// The llm-proxy in front of real engines. run.ts sets them up and runs this: it is no part of `npm test`.
import { chosen } from './chosen.ts';
import { useSite } from './site.ts';
import { behaviour } from './suites/behaviour.ts';
import { records } from './suites/records.ts';

for (const engine of chosen) {
  describe(engine.title, () => {
    const site = useSite(engine);
    describe('a record', () => records(engine, site));
    describe('a call', () => behaviour(engine, site));
  });
}
