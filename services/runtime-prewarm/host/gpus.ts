// The GPUs of this machine, as the topology names them, or as NVIDIA's driver does.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Gpu, GpuGrant } from '../domain/gpus.ts';
import { COMMON_FILES, gpuIn, gpusAmong } from '../domain/nvidia.ts';

const TOLD = '/proc/driver/nvidia/gpus';
const DEVICES = '/dev';

export interface NamedGpus {
  readonly devices: readonly Gpu[] | null;
  readonly common: readonly string[] | null;
  readonly docker: 'runtime' | 'device_files';
}

export const gpusOf = ({ devices, common, docker }: NamedGpus): GpuGrant => ({
  asFiles: docker === 'device_files',
  gpus: devices ?? found(),
  common: common ?? COMMON_FILES.map((name) => join(DEVICES, name)).filter((path) => existsSync(path)),
});

function found(): Gpu[] {
  const told = listed(TOLD)
    .sort()
    .map((name) => gpuIn(readFileSync(join(TOLD, name, 'information'), 'utf8')))
    .filter((gpu) => gpu !== undefined)
    .filter(({ device }) => existsSync(device));
  return told.length > 0 ? told : gpusAmong(listed(DEVICES));
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
