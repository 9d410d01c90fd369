import { expect } from 'chai';
import { SANDBOX_PIDS_MAX } from '../../common/limits.ts';
import { docker } from '../backends/docker/dialect.ts';
import { type ContainerOptions, containerConfig, isSandbox } from './container-config.ts';

const OPTIONS: ContainerOptions = {
  ...{ instance: 'polar-1', runtimeId: 'rt-1', session: 's-1', imageId: 'sha256:0', gpus: {}, storageMb: 0 },
  ...{ limits: { memoryBytes: 1 << 30, cpus: 1.5 }, user: '7:7', seccomp: '{}' },
};
type Config = Record<string, unknown> & { HostConfig: Record<string, unknown> };
const configOf = (more: Partial<ContainerOptions> = {}): Config =>
  containerConfig({ ...OPTIONS, ...more }) as Config;

describe('the configuration of a container', () => {
  it('has a lifeline, whatever the image would run', () => {
    const config = configOf();
    expect(config).to.deep.include({ Entrypoint: ['cat'], Cmd: [], OpenStdin: true, StdinOnce: true });
    expect(config).to.deep.include({ Healthcheck: { Test: ['NONE'] }, User: '7:7' });
    expect(config.HostConfig).to.deep.include({ AutoRemove: true, Init: true });
  });

  it('takes every privilege and the network away', () => {
    expect(configOf().HostConfig).to.deep.include({
      ...{ CapDrop: ['ALL'], SecurityOpt: ['no-new-privileges', 'seccomp={}'] },
      ...{ NetworkMode: 'none', IpcMode: 'private' },
    });
  });

  it('limits what it is told to, and swap with memory', () => {
    expect(configOf().HostConfig).to.deep.include({
      ...{ Memory: 1 << 30, MemorySwap: 1 << 30, PidsLimit: SANDBOX_PIDS_MAX },
      ...{ CpuPeriod: 100_000, CpuQuota: 150_000 },
    });
    const free = configOf({ limits: { memoryBytes: 0, cpus: 0 } }).HostConfig;
    for (const key of ['Memory', 'CpuQuota', 'DeviceRequests', 'StorageOpt'])
      expect(free).to.not.have.property(key);
  });

  it('asks for GPUs and a cap of storage where the task does', () => {
    expect(configOf({ gpus: docker.gpus(2, undefined), storageMb: 64 }).HostConfig).to.deep.include({
      DeviceRequests: [{ Count: 2, Capabilities: [['gpu']] }],
      StorageOpt: { size: '64m' },
    });
  });

  it('can be found again by its labels', () => {
    expect(configOf().Labels).to.eql({
      'polar.instance': 'polar-1',
      'polar.runtime': 'rt-1',
      'polar.session': 's-1',
      'polar.layer': '',
    });
  });

  it('is told by its name from one that somebody runs of an image that was made of it', () => {
    const Labels = { 'polar.runtime': 'rt-1' };
    expect(isSandbox({ Id: 'a', Names: ['/rt-1'], Labels, State: 'running' })).to.equal(true);
    expect(isSandbox({ Id: 'b', Names: ['/mine'], Labels, State: 'running' })).to.equal(false);
    // Its deletion was begun, and is to be ended.
    for (const Names of [null, []])
      expect(isSandbox({ Id: 'c', Names, Labels, State: 'running' })).to.equal(true);
  });
});
