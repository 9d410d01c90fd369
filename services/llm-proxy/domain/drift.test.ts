import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { DRIFTS, driftOf, type Evidence } from './drift.ts';

const evidence: Evidence = {
  total: 6,
  systems: 1,
  shared: 4,
  earlierTotal: 5,
  sameTools: true,
  sameSettings: true,
  inPlace: 0,
  turnReplaced: false,
  withoutThinking: false,
  secondKnown: false,
  head: undefined,
};
const head = { extended: false, atThinking: false };

describe('drift', () => {
  const CASES: readonly [string, Partial<Evidence>][] = [
    ['', { shared: 0 }],
    ['system_changed', { shared: 0, secondKnown: true }],
    ['', { shared: 1 }],
    ['retokenised', { head }],
    ['tools_changed', { head, sameTools: false, sameSettings: false }],
    ['settings_changed', { head, sameSettings: false }],
    ['reasoning_dropped', { head: { ...head, atThinking: true } }],
    ['reasoning_dropped', { withoutThinking: true, turnReplaced: true }],
    ['resampled', { shared: 6 }],
    ['tools_changed', { shared: 6, sameTools: false }],
    ['history_edited', { inPlace: 1 }],
    ['history_edited', { turnReplaced: true }],
    ['rewound', {}],
    ['', { head: { ...head, extended: true }, earlierTotal: 40 }],
    ['', { head: { ...head, extended: true }, shared: 6 }],
    ['history_edited', { head: { ...head, extended: true }, inPlace: 1 }],
    ['history_edited', { head: { ...head, extended: true }, turnReplaced: true, earlierTotal: 20 }],
    ['compacted', { total: 3, shared: 2, earlierTotal: 20 }],
    ['compacted', { total: 5, earlierTotal: 8 }],
    ['rewound', { total: 5, earlierTotal: 7 }],
    ['rewound', { total: 8, earlierTotal: 8 }],
  ];
  for (const [drift, some] of CASES) {
    it(`is ${drift === '' ? 'nothing' : drift} with ${JSON.stringify(some)}`, () => {
      expect(driftOf({ ...evidence, ...some })).to.equal(drift);
    });
  }

  it('has its words in the page on token mode', () => {
    const page = readFileSync(new URL('../../../docs/token-mode.md', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| `(\w+)` \| (.+) \|$/gm)].map(([, word, meaning]) => [word, meaning]);
    const words = rows.filter(([word]) => word !== undefined && word in DRIFTS);
    expect(Object.fromEntries(words)).to.deep.equal(DRIFTS);
  });
});
