// docs/harnesses.md says what the adapters and their settings are. POLAR_DOCS=write writes its tables anew.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { expect } from 'chai';
import { z } from 'zod';
import {
  HARNESSES,
  MCP_TRANSPORTS,
  NOT_INSTALLABLE,
  TAKES_SKILLS,
} from '../../services/common/specs/catalogue.ts';
import { harnessSettings } from '../../services/common/specs/harness-settings.ts';
import { ADAPTERS } from '../../services/harness-executor/adapters/index.ts';
import { PLACES } from '../harnesses/places.ts';

const FILE = new URL('../../docs/harnesses.md', import.meta.url);
const TABLE = /(?<=<!-- table: (adapters|not installable|settings) -->\n)[\s\S]*?(?=<!-- end -->)/g;

const rows = (head: readonly string[], cells: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...cells].map((row) => `| ${row.join(' | ')} |\n`).join('');

const adapters = (): string =>
  rows(
    ['harness', 'program', 'dialect', 'MCP', 'skills', 'transcript'],
    HARNESSES.map((name) => {
      const { install, version, dialect, transcripts } = ADAPTERS[name];
      const from = install?.requirements === undefined ? 'npm' : 'PyPI';
      return [
        `\`${name}\``,
        install === undefined ? 'any command' : `${install.name} ${version}, from ${from}`,
        dialect || 'any',
        MCP_TRANSPORTS[name].map((transport) => `\`${transport}\``).join(', ') || '–',
        TAKES_SKILLS.includes(name) ? 'yes' : '–',
        transcripts.map((path) => `\`${path}\``).join(', ') || (install ? 'standard output' : '–'),
      ];
    }),
  );

interface Property {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly default?: unknown;
}

function valuesOf({ type, enum: values }: Property): string {
  return values?.map((value) => `\`${value}\``).join(', ') ?? type ?? '';
}

const settings = (): string =>
  rows(
    ['harness', 'setting', 'values', 'default'],
    HARNESSES.flatMap((name) => {
      const { properties = {} } = z.toJSONSchema(harnessSettings[name], { io: 'input' });
      return Object.entries(properties as Record<string, Property>).map(([key, property]) => [
        ...[`\`${name}\``, `\`${key}\``, valuesOf(property)],
        property.default === undefined ? "the harness's own" : JSON.stringify(property.default),
      ]);
    }),
  );

const TABLES: Readonly<Record<string, () => string>> = {
  adapters,
  settings,
  'not installable': () => rows(['harness', 'why'], Object.entries(NOT_INSTALLABLE)),
};

describe('docs/harnesses.md', () => {
  const text = readFileSync(FILE, 'utf8');

  it('has the adapters, those that cannot be had, and all settings', () => {
    const made = text.replaceAll(TABLE, (_, name: string) => TABLES[name]?.() ?? '');
    if (process.env['POLAR_DOCS'] === 'write') writeFileSync(FILE, made);
    else expect(text).to.equal(made);
  });

  it('tells what came of each harness in each kind of sandbox: all of them solved the task', () => {
    const run = /<!-- table: run -->\n([\s\S]*?)<!-- end -->/.exec(text)?.[1] ?? '';
    const lines = run.split('\n').filter((line) => line.startsWith('| `'));
    expect(lines.map((line) => line.split('`')[1])).to.deep.equal([...HARNESSES]);
    for (const line of lines) {
      expect(line.match(/\| completed, exit 0, reward 1, /g), line).to.have.length(PLACES.length);
    }
  });
});
