// docs/dialects.md says what the code does: its tables are the rules that the readers of requests go by.
// POLAR_DOCS=write writes them anew.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { expect } from 'chai';
import { DIALECT_NAMES, dialectOf } from '../../services/llm-proxy/dialects/dialects.ts';
import type { Feature } from '../../services/llm-proxy/dialects/features.ts';
import type { DialectName } from '../../services/llm-proxy/domain/paths.ts';

const FILE = new URL('../../docs/dialects.md', import.meta.url);
const TABLE = /(?<=<!-- table: (\S+) (\S+) -->\n)[\s\S]*?(?=<!-- end -->)/g;

const featuresOf = (name: string): readonly Feature[] => dialectOf(name as DialectName).features;

const rowOf = ({ name, support, how }: Feature): string =>
  `| ${name.includes(' ') ? name : `\`${name}\``} | ${support} | ${how} |\n`;

function tableOf(dialect: string, part: string): string {
  const rows = featuresOf(dialect).filter((feature) => feature.part === part);
  expect(rows, `rules for ${part} of ${dialect}`).to.not.have.length(0);
  return ['| what | | how |\n', '|---|---|---|\n', ...rows.map(rowOf)].join('');
}

describe('docs/dialects.md', () => {
  const text = readFileSync(FILE, 'utf8');
  const tables = [...text.matchAll(TABLE)].map(([, dialect, part]) => `${dialect} ${part}`);

  it('has a table for each part of each dialect', () => {
    const parts = DIALECT_NAMES.flatMap((name) => {
      return [...new Set(featuresOf(name).map(({ part }) => part))].map((part) => `${name} ${part}`);
    });
    expect(tables).to.deep.equal(parts);
  });

  it('shows the rules of the code', () => {
    const made = text.replaceAll(TABLE, (_, dialect: string, part: string) => tableOf(dialect, part));
    if (process.env['POLAR_DOCS'] === 'write') writeFileSync(FILE, made);
    else expect(text).to.equal(made);
  });

  it('shows no rule without its words where it refuses', () => {
    for (const name of DIALECT_NAMES) {
      const dumb = featuresOf(name).filter(({ support, how }) => support === 'refused' && how === '');
      expect(dumb, name).to.deep.equal([]);
    }
  });
});
