import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type GpuClaim, NodeGpus } from './gpus.ts';

const GPUS = ['a', 'b', 'c'].map((id) => ({ id, device: `/dev/${id}` }));

describe('claims of GPUs', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-claims-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const open = (shared = false): NodeGpus => {
    const all = { gpus: GPUS, common: [], asFiles: false };
    return new NodeGpus({ file: join(folder, 'gpus.json'), all, shared, outliving: ['docker', 'podman'] });
  };
  const claim = (
    gpus: NodeGpus,
    owner: string,
    count: number,
    { backends = ['bubblewrap'], signal = new AbortController().signal } = {},
  ): Promise<GpuClaim> => gpus.claim({ owner, backends }, count, signal);
  const ids = ({ gpus }: GpuClaim): string => gpus.map(({ id }) => id).join('');

  it('come in turn: what needs many is not passed by what needs few', async () => {
    const gpus = open();
    const one = await claim(gpus, 'one', 2);
    const got: string[] = [];
    const many = claim(gpus, 'many', 3).then((made) => {
      got.push('many');
      return made;
    });
    const few = claim(gpus, 'few', 1).then((made) => {
      got.push('few');
      return made;
    });
    one.release();
    expect(ids(await many)).to.equal('abc');
    expect(got).to.deep.equal(['many']);
    (await many).release();
    expect(ids(await few)).to.equal('a');
  });

  it('that are given up while they wait keep nobody back', async () => {
    const gpus = open();
    const one = await claim(gpus, 'one', 2);
    const leaving = new AbortController();
    const many = claim(gpus, 'many', 3, { signal: leaving.signal }).catch((reason) => reason);
    const few = claim(gpus, 'few', 1);
    leaving.abort('left');
    expect(await many).to.equal('left');
    expect(ids(await few)).to.equal('c');
    one.release();
    one.release();
    expect(gpus.free).to.equal(2);
  });

  it('of one owner are the same, until the last has gone, whoever waited for them', async () => {
    const gpus = open();
    const all = await claim(gpus, 'all', 3);
    const [run, evaluation] = [claim(gpus, 'one', 2), claim(gpus, 'one', 2)];
    all.release();
    expect(ids(await run)).to.equal('ab');
    (await run).release();
    expect(ids(await evaluation)).to.equal('ab');
    expect(gpus.free).to.equal(1);
    (await evaluation).release();
    expect(gpus.free).to.equal(3);
  });

  it('of a container that may live on are held, through a restart too, until nothing is left', async () => {
    const gpus = open();
    const stuck = await claim(gpus, 'stuck', 1, { backends: ['docker'] });
    const folderOnly = await claim(gpus, 'folder', 1);
    stuck.leave();
    folderOnly.leave();
    expect(gpus.free).to.equal(2);
    await claim(gpus, 'other', 1);
    const held = JSON.parse(readFileSync(join(folder, 'gpus.json'), 'utf8'));
    expect(Object.keys(held)).to.deep.equal(['a', 'b']);
    const later = open();
    expect(later.free).to.equal(2);
    expect(ids(await claim(later, 'new', 2))).to.equal('bc');
    later.nothingLeft('podman');
    expect(later.free).to.equal(0);
    later.nothingLeft('docker');
    expect(later.free).to.equal(1);
  });

  it('of a backend that is built on others are held until none of those has anything left', async () => {
    await claim(open(), 'run', 1, { backends: ['own.ts', 'docker', 'podman'] });
    const later = open();
    expect(later.free).to.equal(2);
    later.nothingLeft('docker');
    expect(later.free).to.equal(2);
    expect(open().free, 'written down, too').to.equal(2);
    later.nothingLeft('podman');
    expect(later.free).to.equal(3);
  });

  it('are held by what an earlier version has written', () => {
    const held = { a: { owner: 'run', backend: 'docker' }, b: { owner: 'run', backend: 'process' } };
    writeFileSync(join(folder, 'gpus.json'), JSON.stringify(held));
    expect(open().free).to.equal(2);
  });

  it('are none where they are shared, and docker is asked for a number', async () => {
    const gpus = open(true);
    expect(ids(await claim(gpus, 'one', 2))).to.equal('ab');
    expect(ids(await claim(gpus, 'two', 2))).to.equal('ab');
    expect(ids(await claim(gpus, 'two', 2, { backends: ['docker'] }))).to.equal('');
    expect(() => gpus.check(4, 'docker')).to.not.throw();
    expect(() => gpus.check(4, 'bubblewrap')).to.throw(/4 are asked for, this node has 3/);
  });
});
