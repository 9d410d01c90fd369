// The backends of this node, and which one is used where a task names none.
import type { RuntimeSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { BackendName } from '../../common/specs/catalogue.ts';
import type { PlanDefaults } from '../domain/plan.ts';
import type { ProxyConnect } from '../host/forward.ts';
import type { Host } from '../host/host.ts';
import type { Backend, BackendState } from './backend.ts';
import { openBubblewrap } from './bubblewrap/backend.ts';
import type { LayerLimits } from './bubblewrap/layer-store.ts';
import { openDocker } from './docker/backend.ts';
import { openProcess } from './process/backend.ts';

export interface BackendsOptions {
  readonly host: Host;
  readonly dataDir: string;
  /** To the node's LLM proxy, out of sandboxes. */
  readonly proxy: ProxyConnect;
  /** Of that proxy, for what is no sandbox. */
  readonly proxyUrl: string;
  readonly defaultRuntime: RuntimeSpec | undefined;
  readonly docker: { readonly socket: string; readonly pull: 'missing' | 'never' };
  readonly layers: LayerLimits;
  /** Called when a backend begins to work, and when it stops to, after the start. */
  readonly onChange: (state: BackendState) => void;
}

export interface Backends extends AsyncDisposable {
  /** As they are now. */
  readonly states: readonly BackendState[];
  readonly defaults: PlanDefaults;
  /** One that has worked is still given when it is away: it waits for what it needs. Throws BACKEND_UNAVAILABLE with the reason. */
  get(name: BackendName): Backend;
}

/** `process` is never a default by itself: who wants no isolation says so. */
export async function openBackends(options: BackendsOptions): Promise<Backends> {
  const { host, dataDir, proxy, proxyUrl, defaultRuntime, docker, layers, onChange } = options;
  const pull = docker.pull === 'missing';
  const [bubblewrap, processes, containers] = await Promise.all([
    openBubblewrap(host, dataDir, proxy, layers),
    openProcess(host, proxyUrl),
    openDocker({ host, proxy, socket: docker.socket, pull, onChange }),
  ]);
  const worked = new Map<BackendName, Backend>();
  const states = (): BackendState[] => {
    const all = [bubblewrap, processes, containers.state];
    for (const state of all) if ('backend' in state) worked.set(state.name, state.backend);
    return all;
  };
  return {
    get states() {
      return states();
    },
    defaults: {
      runtime: defaultRuntime,
      backend: 'backend' in bubblewrap ? 'bubblewrap' : undefined,
    },
    get(name) {
      const state = states().find((one) => one.name === name);
      if (state === undefined) throw new PolarError('BACKEND_UNAVAILABLE', `unknown runtime ${name}`);
      if ('backend' in state) return state.backend;
      const backend = worked.get(name);
      if (backend === undefined) throw state.unavailable;
      return backend;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([bubblewrap[Symbol.asyncDispose](), containers[Symbol.asyncDispose]()]);
    },
  };
}
