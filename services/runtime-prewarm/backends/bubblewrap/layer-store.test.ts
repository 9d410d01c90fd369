import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../../../../test/support/eventually.ts';
import { LayerStore } from './layer-store.ts';

describe('layers in folders', () => {
  const parent = mkdtempSync(join(tmpdir(), 'polar-test-layers-'));
  after(() => rmSync(parent, { recursive: true }));

  it('are made anew while a torn one of the same key is being deleted', async () => {
    const [folder, written] = [join(parent, 'layers'), join(parent, 'written')];
    mkdirSync(join(folder, 'key', 'root'), { recursive: true });
    for (let i = 0; i < 2_000; i++) writeFileSync(join(folder, 'key', 'root', String(i)), '');
    mkdirSync(written);
    writeFileSync(join(written, 'new'), '');
    using store = new LayerStore(folder, { maxBytes: 1e9, freeBytes: 0 });
    expect(await store.add('key', written)).to.be.greaterThan(0);
    expect(readdirSync(join(folder, store.take('key')?.path ?? ''))).to.eql(['new']);
    await eventually('the torn one is gone', () => readdirSync(folder).join() === 'key');
  });

  it('stay where their mark cannot be touched, and below who lies on them', async () => {
    const [folder, written] = [join(parent, 'held'), join(parent, 'held-written')];
    for (const made of [folder, written]) mkdirSync(made);
    writeFileSync(join(written, 'file'), '');
    using store = new LayerStore(folder, { maxBytes: 1e9, freeBytes: 0 });
    await store.add('key', written);
    store.take('key');
    rmSync(join(folder, 'key', 'layer.json'));
    const path = join(folder, store.take('key')?.path ?? 'none');
    expect(readdirSync(path)).to.eql(['file']);
    renameSync(path, join(folder, 'key', 'moved'));
    expect([store.take('key'), store.has('key')]).to.eql([undefined, false]);
    const [aside = ''] = readdirSync(folder);
    expect(readdirSync(join(folder, aside, 'moved'))).to.eql(['file']);
  });

  it('are offered beside an entry that cannot be set aside', () => {
    const folder = join(parent, 'odd');
    mkdirSync(folder);
    // Its name is no UTF-8, so that nobody finds what it reads as.
    const odd = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff])]);
    writeFileSync(odd, '');
    expect(() => new LayerStore(folder, { maxBytes: 1e9, freeBytes: 0 })[Symbol.dispose]()).not.to.throw();
    rmSync(odd);
  });
});
