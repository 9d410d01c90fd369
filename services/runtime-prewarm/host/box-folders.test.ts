import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { removeTree } from './box-folders.ts';

const KIB = 1024;
/** Exchanges two entries all the time. */
const SWAP = [
  'import ctypes, os, sys',
  'one, other = map(os.fsencode, sys.argv[1:])',
  'print("ready", flush=True)',
  'while True: ctypes.CDLL(None).renameat2(-100, one, -100, other, 2)',
].join('\n');
const LONG_NAME = 'n'.repeat(200);

describe('deleting the folder of a sandbox', () => {
  const parent = mkdtempSync(join(tmpdir(), 'polar-test-trees-'));
  const tree = join(parent, 'tree');
  after(() => rmSync(parent, { recursive: true }));

  const fill = (folders: number): void => {
    for (let i = 0; i < folders; i++) {
      mkdirSync(join(tree, `folder-${i}`, 'below'), { recursive: true });
      writeFileSync(join(tree, `folder-${i}`, 'file'), 'x');
    }
  };
  /** Deeper than a path can name. */
  const nest = (depth: number): void => {
    const before = process.cwd();
    mkdirSync(tree);
    process.chdir(tree);
    for (let i = 0; i < depth; i++) {
      mkdirSync(LONG_NAME);
      process.chdir(LONG_NAME);
    }
    process.chdir(before);
  };

  const cases: readonly [string, () => void][] = [
    ['a small one', () => fill(10)],
    ['a large one', () => fill(500)],
    ['a deep one', () => nest(40)],
    ['none', () => {}],
  ];
  for (const [what, make] of cases) {
    it(`deletes ${what}`, async () => {
      make();
      await removeTree(tree);
      expect(existsSync(tree)).to.equal(false);
    });
  }

  /** How many processes were started. */
  const processesOf = async (work: () => Promise<void>): Promise<number> => {
    let count = 0;
    const onProcess = (): void => {
      count++;
    };
    subscribe('child_process', onProcess);
    try {
      await work();
    } finally {
      unsubscribe('child_process', onProcess);
    }
    return count;
  };

  const sizes: readonly [string, number, number][] = [
    ['small files itself', 4 * KIB, 0],
    ['a large file by a process of its own', 8 * KIB * KIB, 1],
  ];
  for (const [what, size, processes] of sizes) {
    it(`deletes ${what}`, async () => {
      fill(2);
      writeFileSync(join(tree, 'output'), randomBytes(size));
      expect(await processesOf(() => removeTree(tree))).to.equal(processes);
      expect(existsSync(tree)).to.equal(false);
    });
  }

  it('deletes links, and nothing that they lead to', async () => {
    const kept = join(parent, 'kept');
    mkdirSync(kept);
    writeFileSync(join(kept, 'file'), 'x');
    fill(1);
    symlinkSync(kept, join(tree, 'link'));
    await removeTree(tree);
    expect(existsSync(tree)).to.equal(false);
    expect(readdirSync(kept)).to.eql(['file']);
  });

  it('nor where a link takes the place of a folder meanwhile', async () => {
    const kept = join(parent, 'kept-too');
    const names = Array.from({ length: 100 }, (_, i) => `file-${i}`);
    mkdirSync(kept);
    for (const name of names) writeFileSync(join(kept, name), '');
    const [folder, link] = [join(tree, 'below/folder'), join(tree, 'below/link')];
    for (let round = 0; round < 3; round++) {
      mkdirSync(folder, { recursive: true });
      for (const name of names) writeFileSync(join(folder, name), '');
      symlinkSync(kept, link);
      const swapping = spawn('python3', ['-c', SWAP, folder, link], { stdio: ['ignore', 'pipe', 'inherit'] });
      await once(swapping.stdout, 'data');
      await removeTree(tree).catch(() => {});
      // What the test does itself is not to be swapped under it.
      const ended = once(swapping, 'exit');
      swapping.kill('SIGKILL');
      await ended;
      rmSync(tree, { recursive: true, force: true });
    }
    expect(readdirSync(kept)).to.have.length(names.length);
  });
});
