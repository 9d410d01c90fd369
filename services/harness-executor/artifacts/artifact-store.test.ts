import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { PolarError } from '../../common/errors.ts';
import { ArtifactStore } from './artifact-store.ts';

describe('artifact store', () => {
  let top: string;
  let folder: string;
  let store: ArtifactStore;
  beforeEach(async () => {
    top = folder = mkdtempSync(join(tmpdir(), 'polar-test-artifacts-'));
    store = await ArtifactStore.open(folder);
  });
  afterEach(() => rmSync(top, { recursive: true }));

  const keep = async (session: string, attempt: number, files: Record<string, string>): Promise<void> => {
    const keeping = await store.begin(session, attempt);
    for (const [path, text] of Object.entries(files)) await keeping.add(path, true, Buffer.from(text));
    await keeping.done(['one was too large']);
  };
  const text = async (...asked: Parameters<ArtifactStore['read']>): Promise<string> =>
    Buffer.from(await store.read(...asked)).toString();

  it('lists and reads the files of an attempt, and of the last one', async () => {
    await keep('s-0', 1, { '/a': 'one' });
    await keep('s-0', 10, { '/a': 'ten', '/b/../c': 'odd' });
    const { attempt, artifacts, problems } = await store.list('s-0', 0);
    expect([attempt, artifacts.map(({ path }) => path)]).to.deep.equal([10, ['/a', '/b/../c']]);
    expect(problems).to.deep.equal(['one was too large']);
    expect(await text('s-0', 1, '/a')).to.equal('one');
    expect(await text('s-0', 0, '/b/../c')).to.equal('odd');
  });

  it('reads a file by the name that its task has for it', async () => {
    const keeping = await store.begin('s-0', 1);
    await keeping.add('/w/out/a', false, Buffer.from('one'));
    await keeping.done([], '/w');
    for (const name of ['out/a', './out/a', '/w/out/a']) expect(await text('s-0', 0, name)).to.equal('one');
    const other = await store.read('s-0', 0, 'a').catch((thrown) => thrown);
    expect(other.message).to.equal('this node kept no file a of session s-0, attempt 1');
  });

  it('names the attempt that kept nothing', async () => {
    const told = (attempt: number) => store.list('s-0', attempt).catch(({ message }) => message);
    expect(await told(0)).to.equal('this node kept no files of session s-0, of any attempt');
    expect(await told(2)).to.equal('this node kept no files of session s-0, of attempt 2');
  });

  it('says what is not there, whatever the path is', async () => {
    await keep('s-0', 1, { '/a': 'one' });
    const asked: Parameters<ArtifactStore['read']>[] = [
      ['s-0', 2, '/a'],
      ['s-1', 0, '/a'],
      ['s-0', 1, 'index.json'],
      ['s-0', 1, '../../etc/passwd'],
    ];
    for (const one of asked) {
      const error = await store.read(...one).catch((thrown) => thrown);
      expect(error).to.be.instanceOf(PolarError);
      expect(error.reason).to.equal('NOT_FOUND');
    }
  });

  it('finds everything again after a restart, but for what was not finished', async () => {
    await keep('s-0', 1, { '/a': 'one' });
    await store.begin('s-1', 1);
    mkdirSync(join(folder, 's-2.1'));
    mkdirSync(join(folder, 's-3.1'));
    writeFileSync(join(folder, 's-3.1', 'index.json'), '{"artifacts":[');
    store = await ArtifactStore.open(folder);
    expect(await text('s-0', 0, '/a')).to.equal('one');
    expect(readdirSync(folder)).to.deep.equal(['s-0.1']);
  });

  it('finds everything again wherever its folder lies', async () => {
    folder = join(folder, '.tmp-data', 'artifacts');
    store = await ArtifactStore.open(folder);
    await keep('s-0', 1, { '/a': 'one' });
    store = await ArtifactStore.open(folder);
    expect(await text('s-0', 0, '/a')).to.equal('one');
  });

  it('leaves nothing of what was not finished', async () => {
    {
      await using keeping = await store.begin('s-0', 1);
      await keeping.add('/a', false, Buffer.from('one'));
    }
    expect(readdirSync(folder)).to.deep.equal([]);
  });

  it('replaces what was kept of the same attempt', async () => {
    await keep('s-0', 1, { '/a': 'one', '/b': 'b' });
    await keep('s-0', 1, { '/a': 'again' });
    expect((await store.list('s-0', 1)).artifacts).to.have.length(1);
    expect(await text('s-0', 1, '/a')).to.equal('again');
  });
});
