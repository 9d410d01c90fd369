// What runtime-prewarm counts, for `/metrics`.
import { counter, gauge } from '../common/metrics.ts';
import type { NodeGpus } from './runtimes/gpus.ts';
import type { RuntimeTable } from './runtimes/table.ts';

export const sandboxesPrepared = counter(
  'polar_runtime_prewarm_sandboxes_prepared_total',
  'Sandboxes that were made and prepared.',
  ['backend', 'purpose'],
);
export const sandboxesRemoved = counter(
  'polar_runtime_prewarm_sandboxes_removed_total',
  'Sandboxes that were removed, by cause.',
  ['backend', 'cause'],
);
export const preparationsFailed = counter(
  'polar_runtime_prewarm_preparations_failed_total',
  'Preparations of attempts that failed, by reason.',
  ['reason'],
);
export const layersMade = counter(
  'polar_runtime_prewarm_layers_made_total',
  'Preparations that became layers.',
);
export const imagesRemoved = counter(
  'polar_runtime_prewarm_images_removed_total',
  'Images that were fetched or unpacked here, and removed for room on their disk.',
  ['backend'],
);
export const heartbeatsMissed = counter(
  'polar_runtime_prewarm_heartbeats_missed_total',
  'Heartbeats that no scheduler answered.',
);
export const fenced = counter(
  'polar_runtime_prewarm_fenced_total',
  'Times that this node let go of all its sessions, as no scheduler answered.',
);
const sandboxes = gauge('polar_runtime_prewarm_sandboxes', 'Sandboxes by state.', ['state']);

const gpuCount = gauge('polar_runtime_prewarm_gpus', 'GPUs of the node by state.', ['state']);

/** GPUs as they are. */
export const showGpus = (gpus: NodeGpus): Disposable =>
  gpuCount.from(() => [
    [{ state: 'free' }, gpus.free],
    [{ state: 'claimed' }, gpus.all.gpus.length - gpus.free],
  ]);

/** Sandboxes as they are. */
export const showSandboxes = (runtimes: RuntimeTable): Disposable =>
  sandboxes.from(() => {
    const leased = runtimes.list().length;
    return [
      [{ state: 'leased' }, leased],
      [{ state: 'preparing' }, runtimes.size - leased],
    ];
  });
