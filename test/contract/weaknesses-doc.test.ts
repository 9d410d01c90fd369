// docs/reference-weaknesses.md: all 42 are there, and each names tests that there are.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';

const ROOT = join(import.meta.dirname, '../..');
const WEAKNESSES = 42;
const text = readFileSync(join(ROOT, 'docs/reference-weaknesses.md'), 'utf8');
const rows = [...text.matchAll(/^\| (\d+) \| (.+) \| (.+) \| (.+) \|$/gm)];

/** "`file`: title; `file`: title" */
const testsIn = (cell: string): [file: string, title: string][] =>
  cell.split(/; (?=`)/).map((one) => {
    const [, file = '', title = ''] = /^`([^`]+)`: (.+)$/.exec(one) ?? [];
    return [file, title];
  });

describe('docs/reference-weaknesses.md', () => {
  it('has a line for each weakness, in their order', () => {
    const numbers = rows.map(([, number]) => Number(number));
    expect(numbers).to.deep.equal(Array.from({ length: WEAKNESSES }, (_, i) => i + 1));
  });

  it('names tests that there are', () => {
    for (const [, number, , , cell = ''] of rows) {
      for (const [file, title] of testsIn(cell)) {
        expect(existsSync(join(ROOT, file)), `${number}: ${file}`).to.equal(true);
        const source = readFileSync(join(ROOT, file), 'utf8').replaceAll(/\$\{.*?\}/g, '…');
        const titles = ["'", '"', '`'].map((quote) => `it(${quote}${title}${quote}`);
        expect(
          titles.some((one) => source.includes(one)),
          `${number}: ${file} has no "${title}"`,
        ).to.equal(true);
      }
    }
  });
});
