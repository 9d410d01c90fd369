import { expect } from 'chai';
import { deviceFilesOf, type Gpu, GpuBook } from './gpus.ts';
import { gpuIn, gpusAmong } from './nvidia.ts';

const ALL: Gpu[] = ['a', 'b', 'c'].map((id) => ({ id, device: `/dev/${id}` }));
const holder = (owner: string) => ({ owner, backends: ['docker'] });
const ids = (gpus: readonly Gpu[] | undefined): string | undefined => gpus?.map(({ id }) => id).join('');

describe('GPUs of a node', () => {
  it('are taken all or none, and are free when they are given back', () => {
    const book = new GpuBook(ALL, {});
    expect(ids(book.take(holder('one'), 2))).to.equal('ab');
    expect(book.take(holder('two'), 2)).to.equal(undefined);
    expect(ids(book.free)).to.equal('c');
    expect(ids(book.take(holder('two'), 1))).to.equal('c');
    book.giveBack(({ owner }) => owner === 'one');
    expect([ids(book.free), ids(book.of('two'))]).to.deep.equal(['ab', 'c']);
  });

  it('are known again by what was written down, but for those that are gone', () => {
    const book = new GpuBook(ALL, {});
    book.take(holder('one'), 2);
    const later = new GpuBook(ALL.slice(1), book.held);
    expect([ids(later.of('one')), ids(later.free)]).to.deep.equal(['b', 'c']);
    later.pass('one', holder('left'));
    expect([ids(later.of('one')), ids(later.of('left'))]).to.deep.equal(['', 'b']);
  });

  it('have their files in /dev, with those that go with any', () => {
    const [gpu] = ALL;
    expect(deviceFilesOf({ gpus: gpu ? [gpu] : [], common: ['/some/where/ctl'] })).to.deep.equal([
      ['/dev/a', '/dev/a'],
      ['/some/where/ctl', '/dev/ctl'],
    ]);
  });
});

describe('what a driver tells of GPUs', () => {
  it('is their UUID and the number of their file', () => {
    const told = [
      'Model: \t\t NVIDIA A100-SXM4-40GB',
      'IRQ:   \t\t 33',
      'GPU UUID: \t GPU-1d34c0ab-0001-8a4e-11aa-5d1c0f6b3b62',
      'Video BIOS: \t 92.00.19.00.10',
      'Device Minor: \t 3',
      'GPU Excluded:\t No',
    ].join('\n');
    expect(gpuIn(told)).to.deep.equal({
      id: 'GPU-1d34c0ab-0001-8a4e-11aa-5d1c0f6b3b62',
      device: '/dev/nvidia3',
    });
    expect(gpuIn('Model: none')).to.equal(undefined);
  });

  it('is in the names of files where there is nothing else', () => {
    const found = gpusAmong(['null', 'nvidia10', 'nvidia2', 'nvidiactl', 'nvidia-uvm', 'nvidia-caps']);
    expect(found.map(({ id, device }) => `${id} ${device}`)).to.deep.equal([
      '2 /dev/nvidia2',
      '10 /dev/nvidia10',
    ]);
  });
});
