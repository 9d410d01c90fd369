// A sandbox on a copy of an image: for a manager that may not mount, as one that is not host root.
import { join } from 'node:path';
import { PolarError } from '../../../common/errors.ts';
import { SESSION_FOLDERS } from '../../domain/skeleton.ts';
import { openToOwner } from '../../host/box-folders.ts';
import { Limit } from '../../host/limit.ts';
import { makeFolder } from '../../host/rooted-files.ts';
import { run } from '../../host/run.ts';
import type { Box, BoxSpec } from '../backend.ts';
import { createFolderBox } from './folder-box.ts';
import type { BoxParts } from './parts.ts';

const COPY_MS = 600_000;
/** Where the file system can, nothing is written. */
const COPY = ['cp', '--archive', '--reflink=auto', '--no-target-directory'];
/** As root of a user namespace, where there may be one: images close files to their owner, as many do /etc/shadow. */
const AS_ROOT = [
  'unshare --map-root-user true 2> /dev/null && set -- unshare --map-root-user "$@"',
  'exec "$@" --no-preserve=ownership -- "$image" "$root"',
];
const COPY_AS_ROOT = ['sh', '-c', `image=$1 root=$2; shift 2; ${AS_ROOT.join('; ')}`, 'sh'];

/** `image`: as Images.placeOf says. Throws SANDBOX_FAILED with the words of cp. */
export const createCopyBox = (
  parts: BoxParts,
  spec: BoxSpec,
  image: string,
  signal: AbortSignal,
): Promise<Box> =>
  createFolderBox(parts, spec, {
    async fill(files) {
      await copy(parts, spec, [parts.host.pathOf(image), files.root], signal);
      openToOwner(files.root);
      // Within the root: an image may have links in these places.
      for (const folder of SESSION_FOLDERS) makeFolder(files, `/${folder}`);
    },
    ...{ readOnly: [], readOnlyTry: [], covered: ['proc', 'dev'], copied: parts.host.pathOf(image) },
  });

/** In a control group, so that it ends with this process. */
async function copy(
  { openCell, host }: BoxParts,
  spec: BoxSpec,
  places: readonly [image: string, root: string],
  signal: AbortSignal,
): Promise<void> {
  const folder = join(host.boxes, spec.id);
  const started = async (): Promise<boolean> => true;
  const argv = host.isRoot ? [...COPY, '--', ...places] : [...COPY_AS_ROOT, ...places, ...COPY];
  const launch = { argv, folder, stdin: new Uint8Array(), fds: [], started };
  const { code, timedOut, complaint } = await run(
    openCell(spec),
    { ...launch, limit: new Limit(COPY_MS) },
    () => {},
    signal,
  );
  if (code === 0) return;
  const why = timedOut ? `it took more than ${COPY_MS} ms` : complaint.trim();
  throw new PolarError('SANDBOX_FAILED', `image ${JSON.stringify(spec.image)} cannot be copied: ${why}`);
}
