// What a sandbox is asked for, and by whom.
import type { RuntimeSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { AttemptRef } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { LeaseOwner } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';

export interface AcquireOptions {
  readonly spec: RuntimeSpec | undefined;
  readonly owner: Pick<LeaseOwner, 'sessionId' | 'attempt' | 'purpose'>;
  /** The attempt as the scheduler knows it, where the sandbox is its own. */
  readonly ref?: AttemptRef;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly forEvaluation: boolean;
  /** While it is true, nobody waits for it, and it takes no turn that another sandbox could have. */
  readonly isPatient?: () => boolean;
}
