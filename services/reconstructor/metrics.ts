// What the reconstructor counts, for `/metrics`.
import type { SessionStats } from '../../gen/ts/polar/common/v1/session_pb.js';
import { CALL_SECONDS, chosen, counter, gauge, histogram } from '../common/metrics.ts';

const trajectories = counter('polar_reconstructor_trajectories_built_total', 'Trajectories that were built.');
const traces = counter('polar_reconstructor_traces_built_total', 'Traces of these.');
const trained = counter('polar_reconstructor_trained_tokens_total', 'Sampled ids that are trained.');
const masked = counter(
  'polar_reconstructor_masked_tokens_total',
  'Sampled ids that are not trained, by reason.',
  ['reason'],
);
/** Builders name their own reasons. */
const shownReason = chosen();
const buildSeconds = histogram('polar_reconstructor_build_seconds', 'Builds of trajectories.', CALL_SECONDS);
export const buildsFailed = counter(
  'polar_reconstructor_builds_failed_total',
  'Attempts whose trajectory could not be built, by reason.',
  ['reason'],
);
export const usageDiffers = counter(
  'polar_reconstructor_usage_differs_total',
  'Calls whose sampled ids are not as many as the engine counted.',
);
export const batchesAcked = counter(
  'polar_reconstructor_batches_acked_total',
  'Batches that were acknowledged.',
);
export const batchesNacked = counter(
  'polar_reconstructor_batches_nacked_total',
  'Batches that were given back.',
);
export const batchesDropped = counter(
  'polar_reconstructor_batches_dropped_total',
  'Batches of which a filter left nothing, by reason.',
  ['reason'],
);
const streams = gauge('polar_reconstructor_streams', 'Streams of trainers that are open.');

export function trajectoryBuilt(stats: SessionStats, durationMs: number): void {
  trajectories.inc();
  traces.inc(stats.traces);
  trained.inc(Number(stats.trainedTokens));
  for (const [reason, count] of Object.entries(stats.maskedTokens))
    masked.inc({ reason: shownReason(reason) }, Number(count));
  buildSeconds.observe(durationMs / 1_000);
}

/** Streams as they are. */
export const showStreams = (open: () => number): Disposable => streams.from(() => [[{}, open()]]);
