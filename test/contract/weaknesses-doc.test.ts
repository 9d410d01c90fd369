// docs/reference-weaknesses.md: all 42 are there, and each names tests that there are.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { missingTests } from '../support/named-tests.ts';

const ROOT = join(import.meta.dirname, '../..');
const WEAKNESSES = 42;
const text = readFileSync(join(ROOT, 'docs/reference-weaknesses.md'), 'utf8');
const rows = [...text.matchAll(/^\| (\d+) \| (.+) \| (.+) \| (.+) \|$/gm)];

describe('docs/reference-weaknesses.md', () => {
  it('has a line for each weakness, in their order', () => {
    const numbers = rows.map(([, number]) => Number(number));
    expect(numbers).to.deep.equal(Array.from({ length: WEAKNESSES }, (_, i) => i + 1));
  });

  it('names tests that there are', () => {
    for (const [, number, , , cell = ''] of rows) expect(missingTests(cell), number).to.deep.equal([]);
  });
});
