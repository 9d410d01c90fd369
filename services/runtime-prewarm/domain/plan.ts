// What a sandbox is to be, from a task's runtime and the node's default.
import type { EgressRule, NetworkPolicy } from '../../../gen/ts/polar/common/v1/network_pb.js';
import type { PrepareStep, RuntimeSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';
import { SANDBOX_MEMORY_MB_DEFAULT } from '../../common/limits.ts';
import { backendFault } from '../../common/specs/backend-names.ts';
import { DEFAULT_WORKDIR, unofferedBy } from '../../common/specs/catalogue.ts';
import { rulesOf } from '../../common/specs/egress.ts';
import { partsOf } from './paths.ts';

export interface SandboxPlan {
  readonly backend: string;
  /** Empty: the backend's own default. */
  readonly image: string;
  readonly steps: readonly PrepareStep[];
  /** What the harness may connect to beside the LLM proxy, and what the steps may. */
  readonly egress: readonly EgressRule[];
  readonly prepareEgress: readonly EgressRule[];
  /** No layer: each sandbox runs the steps itself. */
  readonly prepareEach: boolean;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly limits: SandboxLimits;
  readonly gpus: number;
  /** 0: no cap. */
  readonly storageMb: number;
}

export interface SandboxLimits {
  readonly memoryBytes: number;
  /** 0: no limit. */
  readonly cpus: number;
}

export interface PlanDefaults {
  /** Used whole where a task has no runtime; its backend and image where a runtime names none. */
  readonly runtime: RuntimeSpec | undefined;
  /** Where nobody names a backend; undefined: there is none. */
  readonly backend: string | undefined;
}

const MIB = 1024 * 1024;

/**
 * Throws BACKEND_UNAVAILABLE where no backend is named and the node has no default, for unknown names, and for what the
 * backend cannot do.
 */
export function planOf(
  given: RuntimeSpec | undefined,
  defaults: PlanDefaults,
  forEvaluation: boolean,
): SandboxPlan {
  const spec = given ?? defaults.runtime;
  const backend = backendOf(spec?.backend ?? '', defaults);
  const ownDefault = defaults.runtime?.backend === backend || defaults.runtime?.backend === '';
  const network = spec?.network ?? (ownDefault ? defaults.runtime?.network : undefined);
  refuseUnsupported(backend, spec, network);
  const memoryMb = spec?.memoryMb || defaults.runtime?.memoryMb || SANDBOX_MEMORY_MB_DEFAULT;
  const evaluation = forEvaluation ? spec?.evalPrepare : undefined;
  return {
    backend,
    image: spec?.image || (ownDefault ? (defaults.runtime?.image ?? '') : ''),
    steps: evaluation?.steps ?? spec?.prepare ?? [],
    prepareEach: spec?.prepareEach ?? false,
    egress: forEvaluation ? [] : (network?.egress ?? []),
    prepareEgress: network?.prepareEgress ?? [],
    env: { ...spec?.env },
    workdir: `/${partsOf(spec?.workdir || DEFAULT_WORKDIR).join('/')}`,
    limits: { memoryBytes: memoryMb * MIB, cpus: spec?.cpus ?? 0 },
    gpus: spec?.gpus ?? 0,
    storageMb: spec?.storageMb || (ownDefault ? (defaults.runtime?.storageMb ?? 0) : 0),
  };
}

/** Submit has refused it where the task names the backend; here it is known for the node's default too. */
function refuseUnsupported(
  backend: string,
  spec: RuntimeSpec | undefined,
  network: NetworkPolicy | undefined,
): void {
  const { storageMb = 0 } = spec ?? {};
  const [fault] = unofferedBy(backend, { storageMb, egress: rulesOf(network) });
  if (fault === undefined) return;
  throw new PolarError('BACKEND_UNAVAILABLE', `runtime.${fault.field}: ${fault.description}`);
}

function backendOf(named: string, { runtime, backend }: PlanDefaults): string {
  const name = named || runtime?.backend || backend;
  if (name === undefined) {
    throw new PolarError(
      'BACKEND_UNAVAILABLE',
      'the task names no runtime backend and this node has no default: install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or set runtime.backend to process, which isolates nothing',
    );
  }
  const fault = backendFault(name);
  if (fault !== undefined) throw new PolarError('BACKEND_UNAVAILABLE', fault);
  return name;
}
