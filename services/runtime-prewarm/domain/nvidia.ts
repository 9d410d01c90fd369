// What NVIDIA's driver tells of a GPU: /proc/driver/nvidia/gpus/*/information.
import type { Gpu } from './gpus.ts';

/** Undefined: it is another text. */
export function gpuIn(information: string): Gpu | undefined {
  const textOf = (name: string): string | undefined =>
    new RegExp(`^${name}:\\s*(\\S+)\\s*$`, 'm').exec(information)?.[1];
  const [id, minor] = [textOf('GPU UUID'), textOf('Device Minor')];
  return id === undefined || minor === undefined ? undefined : { id, device: `/dev/nvidia${minor}` };
}

/** Of its device files, where it tells nothing. */
export const gpusAmong = (names: readonly string[]): Gpu[] =>
  names
    .map((name) => /^nvidia(\d+)$/.exec(name)?.[1])
    .filter((id) => id !== undefined)
    .sort((a, b) => Number(a) - Number(b))
    .map((id) => ({ id, device: `/dev/nvidia${id}` }));

/** Files that go with any GPU. */
export const COMMON_FILES: readonly string[] = [
  'nvidiactl',
  'nvidia-uvm',
  'nvidia-uvm-tools',
  'nvidia-modeset',
];
