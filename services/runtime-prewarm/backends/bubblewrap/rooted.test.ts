import { expect } from 'chai';
import type { Images } from './images.ts';
import type { BoxParts } from './parts.ts';
import { rootedBackend } from './rooted.ts';

const SPEC = {
  ...{ id: 'one', session: '', image: 'large.sif', gpus: 0, storageMb: 0 },
  limits: { memoryBytes: 0, cpus: 0 },
};

describe('a backend with root file systems', () => {
  it('lets who leaves go at once, however long the image takes to be prepared', async () => {
    const images = { prepare: () => new Promise<string>(() => {}) } as Pick<Images, 'prepare'> as Images;
    const parts = { host: { stage: '/run/x' } } as BoxParts;
    const backend = rootedBackend('apptainer', parts, images, true);
    for (const wait of [
      (signal: AbortSignal) => backend.create(SPEC, signal),
      async (signal: AbortSignal) => backend.layers?.identityOf(SPEC.image, signal),
    ]) {
      const leaving = new AbortController();
      const waiting = wait(leaving.signal).catch((reason) => reason);
      leaving.abort('left');
      expect(await waiting).to.equal('left');
    }
  });
});
