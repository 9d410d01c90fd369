// Programs as set-up makes them (tools/build.mjs), in a folder of the test's own beside this checkout's packages.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { ROOT } from '../support/cli.ts';

const PROGRAMS = ['services/scheduler/main.ts', 'services/llm-proxy/main.ts'];
const LONG_AGO = new Date('2020-01-01');

describe('programs made ahead', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'polar-test-built-'));
    for (const name of ['build.mjs', 'built.mjs']) {
      put(`tools/${name}`, '');
      cpSync(join(ROOT, 'tools', name), join(root, 'tools', name));
    }
    put('package.json', '{"type": "module"}');
    put('node_modules/.package-lock.json', '{}');
    for (const name of ['esbuild', '@esbuild']) {
      symlinkSync(join(ROOT, 'node_modules', name), join(root, 'node_modules', name));
    }
    put('services/common/word.ts', "export const word: string = 'one';\n");
    for (const name of PROGRAMS) {
      put(
        name,
        "import { join } from 'node:path';\nimport { word } from '../common/word.ts';\nconsole.log(word, join(import.meta.dirname, 'x'));\n",
      );
    }
    build();
  });
  afterEach(() => rmSync(root, { recursive: true }));

  function put(name: string, content: string): void {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
    utimesSync(join(root, name), LONG_AGO, LONG_AGO);
  }
  function node(args: readonly string[], env: Record<string, string> = {}): string {
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
    expect(status, stderr).to.equal(0);
    return stdout.trim();
  }
  const build = (): string => node([join(root, 'tools/build.mjs')]);
  const built = (): string[] =>
    readdirSync(join(root, 'node_modules/.cache/polar-mesh')).filter((name) => name.startsWith('built-'));
  const [PROGRAM = ''] = PROGRAMS;
  /** What would be run for the program. */
  const chosen = (env: Record<string, string> = {}, at = root): string => {
    const script = `import { programOf } from '${join(at, 'tools/built.mjs')}'; console.log(programOf('${join(at, PROGRAM)}'));`;
    return node(['--input-type=module', '-e', script], env);
  };

  it('are run in the place of their sources, and find what lies beside those', () => {
    expect(chosen()).to.match(/node_modules\/\.cache\/polar-mesh\/built-.*main\.mjs$/);
    expect(node([chosen()])).to.equal(`one ${join(root, 'services/scheduler/x')}`);
    // By other users, too.
    expect(statSync(join(root, 'node_modules/.cache/polar-mesh', built()[0] ?? '')).mode & 0o5).to.equal(0o5);
    expect(chosen({ POLAR_FROM_SOURCE: '1' })).to.equal(join(root, PROGRAM));
  });

  it('are passed over where a source is another one, until they are made again', () => {
    put('services/common/word.ts', "export const word: string = 'two';\n");
    utimesSync(join(root, 'services/common/word.ts'), new Date('2020-01-02'), new Date('2020-01-02'));
    expect(chosen()).to.equal(join(root, PROGRAM));
    expect(node([chosen()])).to.match(/^two /);
    build();
    expect(node([chosen()])).to.match(/^two /);
    expect(chosen()).to.contain('built-');
    put('node_modules/.package-lock.json', '{"other": "packages"}');
    expect(chosen()).to.equal(join(root, PROGRAM));
  });

  it('stay where a source is the same at another time, and are not made again', () => {
    const now = new Date();
    for (const name of PROGRAMS) utimesSync(join(root, name), now, now);
    const before = built();
    build();
    expect(built()).to.deep.equal(before);
    expect(chosen()).to.contain(before[0]);
  });

  it('are not taken from another checkout, and only the last two are kept', () => {
    const copy = `${root}-copy`;
    try {
      cpSync(root, copy, { recursive: true, verbatimSymlinks: true });
      expect(chosen({}, copy)).to.equal(join(copy, PROGRAM));
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
    for (const word of ['two', 'three', 'four']) {
      put('services/common/word.ts', `export const word: string = 'number ${word}';\n`);
      build();
    }
    expect(built()).to.have.length(2);
    expect(node([chosen()])).to.match(/^number four /);
  });
});
