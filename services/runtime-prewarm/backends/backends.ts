// The backends of this node, and which one is used where a task names none.
import { join } from 'node:path';
import type { RuntimeSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { LayerLimits } from '../domain/layer-shelf.ts';
import type { PlanDefaults } from '../domain/plan.ts';
import type { Watermarks } from '../domain/watermarks.ts';
import type { ProxyConnect } from '../host/forward.ts';
import type { Host } from '../host/host.ts';
import { openApptainer } from './apptainer/backend.ts';
import { UnpackedImages } from './apptainer/unpacked.ts';
import type { Backend, BackendState } from './backend.ts';
import { openBubblewrap } from './bubblewrap/backend.ts';
import { LayerStore } from './bubblewrap/layer-store.ts';
import { type OpenedDocker, openDocker } from './docker/backend.ts';
import { type Dialect, docker as dockerDialect } from './docker/dialect.ts';
import type { OnStuck } from './docker/layers.ts';
import { ImageSweep, type SweepEvents } from './image-sweep.ts';
import { LookedFor, type OpenedBackend } from './looked-for.ts';
import { openPlugin } from './plugin.ts';
import { podman as podmanDialect } from './podman/dialect.ts';
import { openProcess } from './process/backend.ts';

/** Between two looks whether images have to go for room. */
const IMAGES_CHECK_MS = 3_000;

/** A container engine of this machine. */
export interface EngineOptions {
  readonly socket: string;
  readonly pull: 'missing' | 'never';
}

export interface BackendsOptions {
  readonly host: Host;
  readonly dataDir: string;
  /** To the node's LLM proxy, out of sandboxes. */
  readonly proxy: ProxyConnect;
  /** Of that proxy, for what is no sandbox. */
  readonly proxyUrl: string;
  readonly defaultRuntime: RuntimeSpec | undefined;
  readonly docker: EngineOptions;
  readonly podman: EngineOptions & { readonly map_users: boolean };
  readonly layers: LayerLimits;
  /** When images go for room, and who is told. */
  readonly marks: Watermarks;
  readonly sweepEvents: SweepEvents;
  /** Paths below `dir`. */
  readonly plugins: { readonly dir: string | undefined; readonly paths: readonly string[] };
  /** Called when an engine cannot delete what nobody has. */
  readonly onStuck: OnStuck;
  /** Called with a container engine's name while nothing is left of sandboxes there that nobody has. */
  readonly onNothingLeft: (backend: string) => void;
  /** Called when a backend begins to work, and when it stops to, after the start. */
  readonly onChange: (state: BackendState) => void;
}

export interface Backends extends AsyncDisposable {
  /** As they are now. */
  readonly states: readonly BackendState[];
  readonly defaults: PlanDefaults;
  /** One that has worked is still given when it is away: it waits for what it needs. Throws BACKEND_UNAVAILABLE with the reason. */
  get(name: string): Backend;
}

/** `process` is never a default by itself: who wants no isolation says so. */
export async function openBackends(options: BackendsOptions): Promise<Backends> {
  const {
    host,
    dataDir,
    proxy,
    proxyUrl,
    defaultRuntime,
    docker,
    podman,
    layers,
    marks,
    sweepEvents,
    plugins,
    onStuck,
    onNothingLeft,
    onChange,
  } = options;
  const engines = { host, proxy, layers, marks, sweepEvents, onStuck, onChange };
  const openEngine = (dialect: Dialect, { socket, pull }: EngineOptions): Promise<OpenedDocker> =>
    openDocker({
      ...{ ...engines, dialect, socket, pull: pull === 'missing' },
      onNothingLeft: () => onNothingLeft(dialect.name),
    });
  const store = new LayerStore(host.layers, layers);
  const shared = { store, areMade: layers.maxBytes > 0 };
  const unpacked = openUnpacked(options);
  const lookFor = (open: () => Promise<OpenedBackend>): Promise<LookedFor> => LookedFor.open(open, onChange);
  const [bubblewrap, ...others] = await Promise.all([
    lookFor(() => openBubblewrap(host, dataDir, proxy, shared)),
    lookFor(() => openProcess(host, proxyUrl)),
    lookFor(() => openApptainer(host, dataDir, proxy, shared, unpacked)),
    openEngine(dockerDialect, docker),
    openEngine(podmanDialect(join(dataDir, 'podman'), podman.map_users), podman),
  ]);
  const builtIn = (name: string): Backend =>
    working(
      [bubblewrap, ...others].map(({ state }) => state),
      name,
    );
  const more = await Promise.all(
    plugins.paths.map((path) => openPlugin(plugins.dir, path, { dataDir, proxy, builtIn })),
  );
  const worked = new Map<string, Backend>();
  const states = (): BackendState[] => {
    const all = [bubblewrap, ...others, ...more].map(({ state }) => state);
    for (const state of all) if ('backend' in state) worked.set(state.name, state.backend);
    return all;
  };
  return {
    get states() {
      return states();
    },
    get defaults() {
      const backend = 'backend' in bubblewrap.state ? 'bubblewrap' : undefined;
      return { runtime: defaultRuntime, backend };
    },
    get(name) {
      const now = states();
      return worked.get(name) ?? working(now, name);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(more.map((one) => one[Symbol.asyncDispose]()));
      await Promise.all([bubblewrap, ...others].map((one) => one[Symbol.asyncDispose]()));
      await unpacked[Symbol.asyncDispose]();
      store[Symbol.dispose]();
    },
  };
}

/** One for all tries to open the backend. */
function openUnpacked({ host, marks, sweepEvents: events }: BackendsOptions) {
  const shelf = new UnpackedImages(host.unpacked, `${host.unpacked}-used`);
  const sweep = new ImageSweep({
    ...{ backend: 'apptainer', marks, events, folder: () => host.unpacked },
    ...{ idle: () => shelf.idle(), count: () => shelf.keys().length },
  });
  const timer = setInterval(() => void sweep.run(), IMAGES_CHECK_MS).unref();
  return {
    shelf,
    onAdded: () => void sweep.run(),
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await sweep.close();
    },
  };
}

function working(states: readonly BackendState[], name: string): Backend {
  const state = states.find((one) => one.name === name);
  if (state === undefined) throw new PolarError('BACKEND_UNAVAILABLE', `this node has no runtime ${name}`);
  if ('backend' in state) return state.backend;
  throw state.unavailable;
}
