// The guards of the protos see what they guard against.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect } from 'chai';
import { differences } from '../../tools/generate.mjs';

const root = join(import.meta.dirname, '..', '..');
const IMAGE = 'proto.image.binpb';

describe('contract: protos', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-proto-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('generated code that is changed, missing or stale is found', () => {
    const [made, committed] = [join(folder, 'made'), join(folder, 'committed')];
    const write = (base: string, file: string, text: string): void => {
      mkdirSync(dirname(join(base, file)), { recursive: true });
      writeFileSync(join(base, file), text);
    };
    for (const base of [made, committed]) write(base, 'ts/same.js', 'a');
    write(committed, 'python/__pycache__/same.pyc', 'a');
    expect(differences(made, committed)).to.deep.equal([]);
    write(made, 'ts/changed.js', 'a');
    write(committed, 'ts/changed.js', 'b');
    write(made, 'ts/missing.js', 'a');
    write(committed, 'python/x/stale.py', 'a');
    expect(differences(made, committed)).to.deep.equal([
      { file: 'python/x/stale.py', kind: 'stale' },
      { file: 'ts/changed.js', kind: 'changed' },
      { file: 'ts/missing.js', kind: 'missing' },
    ]);
  });

  it('a change that breaks clients is refused, an added field is not', function () {
    this.timeout(60_000);
    for (const part of ['proto', 'third_party', 'buf.yaml']) {
      cpSync(join(root, part), join(folder, part), { recursive: true });
    }
    expect(buf(folder, 'build', 'proto', '-o', IMAGE, '--exclude-source-info').status).to.equal(0);
    const file = join(folder, 'proto/polar/reconstructor/v1/trajectory.proto');
    const text = readFileSync(file, 'utf8');
    const field = '  bytes prompt_ids = 1;';
    expect(text).to.include(field);
    writeFileSync(file, text.replace(field, `${field}\n  // Added.\n  bytes added = 99;`));
    expect(buf(folder, 'breaking', 'proto', '--against', IMAGE)).to.deep.include({ status: 0, stdout: '' });
    writeFileSync(file, text.replace(field, '  bytes prompt_ids = 99;'));
    const { status, stdout } = buf(folder, 'breaking', 'proto', '--against', IMAGE);
    expect(status).to.equal(100);
    expect(stdout).to.match(/field "1" with name "prompt_ids"/);
  });
});

function buf(cwd: string, ...args: readonly string[]): { status: number | null; stdout: string } {
  const path = [join(root, 'node_modules', '.bin'), process.env['PATH']].join(delimiter);
  const env = { ...process.env, PATH: path };
  const { status, stdout } = spawnSync('buf', args, { cwd, encoding: 'utf8', env });
  return { status, stdout };
}
