// Parts of the topology's `rollout` that are ours.
import { z } from 'zod';
import { QUEUE_PATTERN } from '../ids.ts';

/** [mesh] Queues that tasks may wait in share run time by weight; those that are not here have weight 1 and no cap. */
export const queues = z
  .array(
    z.strictObject({
      name: z.string().regex(QUEUE_PATTERN, 'must be 1 to 64 of [A-Za-z0-9._-]'),
      weight: z.number().min(0.001).max(1_000_000).default(1),
      /** Sessions from dispatch to the end of their run. */
      max_running: z.int().positive().nullable().default(null),
    }),
  )
  .max(1_000)
  .default([])
  .superRefine((list, ctx) => {
    for (const [i, { name }] of list.entries()) {
      if (list.findIndex((one) => one.name === name) === i) continue;
      ctx.addIssue({ code: 'custom', path: [i, 'name'], message: `${name} is there twice` });
    }
  });

/** [mesh] Hosts that callbacks may go to although they are not public, `host` or `host:port`. */
export const callbackHosts = z
  .array(
    z
      .string()
      .regex(
        /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?$/,
        'must be a host or host:port, without a scheme; IPv6 in brackets',
      ),
  )
  .max(1_000)
  .default([]);
