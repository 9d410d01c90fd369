// The GPUs of a node.
import { z } from 'zod';

const path = z.string().startsWith('/', 'must be an absolute path');

const device = z.strictObject({
  /** As the container engine and CUDA name it: a UUID, or a number. */
  id: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of [A-Za-z0-9._-]'),
  /** Its device file. */
  device: path,
  /** Its name by the Container Device Interface; runtime docker asks for it by that where it is set. */
  cdi: z
    .string()
    .regex(/^[^/=\s]+\/[^/=\s]+=[^\s]+$/, 'must be VENDOR/CLASS=NAME')
    .optional(),
});

/** [mesh] */
export const nodeGpus = z
  .strictObject({
    /** Sandboxes share them: nobody claims any. */
    shared: z.boolean().default(false),
    /** How containers of docker get theirs: by NVIDIA's runtime or the Container Device Interface, or as device files alone. */
    docker: z.enum(['runtime', 'device_files']).default('runtime'),
    /** null: those that the driver tells of. */
    devices: z.array(device).max(64).nullable().default(null),
    /** Device files that go with any of them; null: those of the driver that there are. */
    common: z.array(path).max(64).nullable().default(null),
  })
  .superRefine(({ devices }, ctx) => {
    for (const key of ['id', 'device', 'cdi'] as const) {
      const seen = new Set<string>();
      for (const [i, one] of (devices ?? []).entries()) {
        const value = one[key];
        if (value === undefined) continue;
        if (seen.has(value))
          ctx.addIssue({ code: 'custom', path: ['devices', i, key], message: `${value} is there twice` });
        seen.add(value);
      }
    }
  })
  .prefault({});
