import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
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
});
