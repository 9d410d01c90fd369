// docs/faults.md: names tests that there are, and all faults of harnesses and preparations that are tested.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { DISK_FAULT, HARNESS_FAULTS, PREPARATION_FAULTS } from '../support/harness-faults.ts';
import { missingTests } from '../support/named-tests.ts';

const text = readFileSync(join(import.meta.dirname, '../../docs/faults.md'), 'utf8');
const rows = [...text.matchAll(/^\| (.+) \| (.+) \| (`.+) \|$/gm)];
const BY_NAME = '`test/e2e/harness-faults.test.ts`: ';

describe('docs/faults.md', () => {
  it('names tests that there are', () => {
    const cells = rows.map(([, , , cell = '']) => cell).filter((cell) => !cell.startsWith(BY_NAME));
    expect(cells.length).to.be.greaterThan(10);
    for (const cell of cells) expect(missingTests(cell)).to.deep.equal([]);
  });

  it('has what harnesses and preparations do, by its name', () => {
    const named = rows.flatMap(([, , , cell = '']) =>
      cell.startsWith(BY_NAME) ? [cell.slice(BY_NAME.length)] : [],
    );
    const tested = [...HARNESS_FAULTS, DISK_FAULT, ...PREPARATION_FAULTS].map(({ name }) => name);
    expect(tested).to.include.members(named);
    expect(named.length).to.be.greaterThan(10);
  });
});
