// The apptainer of the tests: the machine's, or one of the project's cache.
import { join } from 'node:path';
import { findTool } from '../../services/runtime-prewarm/host/tools.ts';
import { isHostRoot } from './runtime-prewarm.ts';

const CACHE = process.env['POLAR_CACHE_DIR'] ?? join(import.meta.dirname, '../../.cache');
/** Where apptainer-install.ts puts it. */
export const APPTAINER_FOLDER = join(CACHE, 'apptainer');
/** Search path of a node that has it. */
export const pathWithApptainer = `${process.env['PATH'] ?? ''}:${APPTAINER_FOLDER}/usr/bin`;
export const apptainer = findTool('apptainer', pathWithApptainer);
/** Why tests of it cannot run; undefined: they can. */
export const withoutApptainer =
  apptainer === undefined
    ? 'apptainer is not here'
    : isHostRoot
      ? undefined
      : 'these tests of apptainer need a runtime-prewarm that is root';
