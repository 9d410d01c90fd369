// The house style as a test. Each rule is run on the repository, and on a small tree planted with a violation of it.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { PLANTED_FOR_BIOME, PLANTED_FOR_RULES } from './support/tidy/planted.ts';
import { RULES } from './support/tidy/rules.ts';
import { type Fault, plantedTree, repositoryTree } from './support/tidy/tree.ts';

const root = dirname(import.meta.dirname);
const told = ({ file, line, message }: Fault): string => `${file}${line > 0 ? `:${line}` : ''}: ${message}`;

describe('tidy', () => {
  const repository = repositoryTree(root);

  it('runs on the Node that the project pins', () => {
    expect(process.version).to.match(/^v24\./);
  });

  it('sees the repository', () => {
    expect(repository.files).to.include.members([
      'package.json',
      'services/common/errors.ts',
      'test/tidy.test.ts',
    ]);
    expect(repository.files.length).to.be.greaterThan(100);
  });

  it('has a planted violation for each rule', () => {
    expect(Object.keys(PLANTED_FOR_RULES)).to.have.members(Object.keys(RULES));
  });

  for (const [name, rule] of Object.entries(RULES)) {
    it(`${name}: the repository keeps it`, () => {
      expect(rule(repository).map(told)).to.deep.equal([]);
    });

    it(`${name}: finds what is planted, and nothing else`, () => {
      const { files, faults } = PLANTED_FOR_RULES[name as keyof typeof RULES];
      expect(rule(plantedTree(files)).map(({ file, line }) => `${file}:${line}`)).to.have.members(faults);
    });
  }
});

describe('tidy: Biome', () => {
  it('finds what is planted, and nothing else', function () {
    this.timeout(60_000);
    const folder = mkdtempSync(join(tmpdir(), 'polar-tidy-'));
    try {
      for (const [file, { text }] of Object.entries(PLANTED_FOR_BIOME)) {
        mkdirSync(dirname(join(folder, file)), { recursive: true });
        writeFileSync(join(folder, file), text);
      }
      expect(lint(folder)).to.deep.equal(
        Object.entries(PLANTED_FOR_BIOME)
          .flatMap(([file, { rules }]) => rules.map((rule) => `${file} ${rule}`))
          .sort(),
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/** What Biome says with the repository's rules, as `file category`. */
function lint(folder: string): string[] {
  for (const file of ['biome.json', 'package.json'])
    writeFileSync(join(folder, file), readFileSync(join(root, file)));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const biome = join(root, 'node_modules', '.bin', 'biome');
  const args = ['lint', '--vcs-enabled=false', '--reporter=json', '--max-diagnostics=none', '.'];
  const { stdout } = spawnSync(biome, args, { cwd: folder, encoding: 'utf8' });
  const { diagnostics } = JSON.parse(stdout) as {
    diagnostics: { category: string; location: { path: unknown } }[];
  };
  return diagnostics
    .map(({ category, location }) => `${pathOf(location.path)} ${category.replace(/^lint\//, '')}`)
    .sort();
}

const pathOf = (path: unknown): string => (typeof path === 'string' ? path : (path as { file: string }).file);
