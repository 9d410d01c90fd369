// Paths inside a sandbox, as callers give them.
import type { PrepareStep, UploadFile } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';

export interface FileWrite {
  /** Absolute in the sandbox. */
  readonly path: string;
  readonly content: Uint8Array;
  /** Permission bits. */
  readonly mode: number;
}

const MODE_DEFAULT = 0o644;

/** The parts of an absolute path. Throws UNSAFE_PATH for a relative one, `..` and NUL. */
export function partsOf(path: string): string[] {
  if (!path.startsWith('/')) throw unsafe(path, 'must be absolute');
  return checkedParts(path);
}

/** Files of an upload with absolute targets. Throws UNSAFE_PATH. */
export function filesOf(step: PrepareStep['step']): FileWrite[] {
  if (step.case === 'uploadFile') return [fileOf(step.value)];
  if (step.case !== 'uploadDir') return [];
  const folder = `/${partsOf(step.value.target).join('/')}`;
  return step.value.files.map((file) => {
    if (file.target.startsWith('/')) throw unsafe(file.target, 'must be relative to the folder');
    const below = checkedParts(file.target).join('/');
    if (below === '') throw unsafe(file.target, 'must name a file');
    return { ...fileOf({ ...file, target: `${folder}/${below}` }) };
  });
}

/** One file with an absolute target. Throws UNSAFE_PATH. */
export function fileOf({ target, content, mode }: UploadFile): FileWrite {
  const parts = partsOf(target);
  if (parts.length === 0) throw unsafe(target, 'must name a file');
  return { path: `/${parts.join('/')}`, content, mode: mode === 0 ? MODE_DEFAULT : mode & 0o777 };
}

export const unsafe = (path: string, why: string): PolarError =>
  new PolarError('UNSAFE_PATH', `path ${JSON.stringify(path)} ${why}`);

function checkedParts(path: string): string[] {
  if (path.includes('\0')) throw unsafe(path, 'must not hold NUL');
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw unsafe(path, 'must not hold ..');
  return parts;
}
