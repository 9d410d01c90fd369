// AcquireRuntime: a sandbox, prepared and leased.
import { clone } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { type RuntimeSpec, RuntimeSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { LEASE_MAX_MS, PREPARE_DEFAULT_MS } from '../../common/limits.ts';
import { Faults } from '../../common/specs/faults-of.ts';
import { checkRuntime, completeRuntime } from '../../common/specs/runtime-spec.ts';
import type { RuntimePrewarmContext } from '../context.ts';
import { durationBetween, leaseOf, runtimeMessage } from '../domain/messages.ts';

export function acquireRuntime(
  ctx: RuntimePrewarmContext,
): Pick<ServiceImpl<typeof RuntimeService>, 'acquireRuntime'> {
  return {
    async acquireRuntime({ spec, owner, ttl, forEvaluation, prepareTimeout }, { signal }) {
      const { sessionId = '', attempt = 0, purpose = '' } = owner ?? {};
      const options = {
        spec: spec && ctx.specs.of(checked(spec)),
        owner: { sessionId, attempt, purpose },
        leaseMs: leaseOf('ttl', ttl),
        timeoutMs: durationBetween('prepare_timeout', prepareTimeout, PREPARE_DEFAULT_MS, 1, LEASE_MAX_MS),
        forEvaluation,
      };
      const begin = performance.now();
      const claimed = await ctx.ahead.claim(options, signal);
      const timeoutMs = Math.max(1, Math.round(options.timeoutMs - (performance.now() - begin)));
      const runtime = claimed ?? (await ctx.runtimes.acquire({ ...options, timeoutMs }, signal));
      return { runtime: runtimeMessage(runtime, Date.now()) };
    },
  };
}

/** Checked as a task's at submit, where defaults are filled in. Throws INVALID_REQUEST with every fault. */
function checked(spec: RuntimeSpec): RuntimeSpec {
  const complete = clone(RuntimeSpecSchema, spec);
  completeRuntime(complete);
  const faults = new Faults();
  checkRuntime(complete, 'spec', faults);
  if (faults.found.length > 0) throw faulty('INVALID_REQUEST', 'AcquireRuntime', faults.found);
  return spec;
}
