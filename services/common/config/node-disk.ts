// Keys of a node that say what its caches may take of its disk, and when they give room back.
import { z } from 'zod';

const percent = z.number().min(1).max(100);

/** [mesh] */
export const nodeDisk = {
  /** Root file systems for `image`, one folder each. */
  images_dir: z.string().min(1).optional(),
  /** Disk that prepared layers may take, in MiB; 0: none are made. */
  layers_max_mb: z.int().min(0).default(20_480),
  /** Below so much free disk no layer is made and unused ones go, in MiB. */
  layers_free_mb: z.int().min(0).default(2_048),
  /** Used share of a disk above which images go that this node has fetched or unpacked; 100: none ever go. */
  images_high_percent: percent.default(85),
  /** Below it no more of them go. */
  images_low_percent: percent.default(80),
  /** One that was used within so many seconds stays. */
  images_keep_seconds: z.number().min(0).default(120),
};

/** A fault that concerns several of these keys; undefined: there is none. */
export const diskFault = (given: {
  readonly images_high_percent: number;
  readonly images_low_percent: number;
}) =>
  given.images_low_percent > given.images_high_percent
    ? { path: ['images_low_percent'], message: 'is above images_high_percent' }
    : undefined;
