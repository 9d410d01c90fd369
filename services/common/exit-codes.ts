// Exit codes of every command.
import { asPolarError } from './errors.ts';

export const EXIT = {
  ok: 0,
  /** The work was done and failed: a session without a trajectory, a service that ended. */
  failed: 1,
  /** Wrong arguments, or a task or topology file with faults. */
  usage: 2,
  /** The mesh cannot be reached. */
  unreachable: 3,
} as const;

export function exitCodeOf(error: unknown): number {
  const { reason } = asPolarError(error);
  const away = ['MESH_UNREACHABLE', 'NODE_LOST', 'NATS_UNAVAILABLE', 'NATS_REFUSED', 'TLS_FAILED'];
  if (away.includes(reason)) return EXIT.unreachable;
  const bad = [
    'INVALID_TASK',
    'INVALID_CONFIG',
    'INVALID_REQUEST',
    'UNKNOWN_HARNESS',
    'UNKNOWN_BUILDER',
    'UNKNOWN_EVALUATOR',
    'BUILDER_PLUGIN_INVALID',
    'EVALUATOR_PLUGIN_INVALID',
  ];
  return bad.includes(reason) ? EXIT.usage : EXIT.failed;
}
