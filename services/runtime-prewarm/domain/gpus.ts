// GPUs of a node, and who has which.

export interface Gpu {
  /** As the container engine and CUDA name it. */
  readonly id: string;
  /** Its device file. */
  readonly device: string;
  /** Its name by the Container Device Interface. */
  readonly cdi?: string | undefined;
}

/** What a sandbox is given. */
export interface GpuGrant {
  readonly gpus: readonly Gpu[];
  /** Device files that go with any of them. */
  readonly common: readonly string[];
  /** Containers of docker get them as device files alone. */
  readonly asFiles: boolean;
}

/** Device files of a grant, from the host to inside. */
export const deviceFilesOf = ({
  gpus,
  common,
}: Omit<GpuGrant, 'asFiles'>): [source: string, target: string][] =>
  [...gpus.map(({ device }) => device), ...common].map((path) => [
    path,
    `/dev/${path.slice(path.lastIndexOf('/') + 1)}`,
  ]);

/** Who has a GPU: an attempt, or a sandbox of none. */
export interface GpuHolder {
  readonly owner: string;
  /** What its sandboxes are made by: their backend, and those that it is built on. */
  readonly backends: readonly string[];
}

export class GpuBook {
  readonly #all: readonly Gpu[];
  readonly #holders = new Map<string, GpuHolder>();

  /** `held`: by id, of what is no GPU here any more too, which does not count. */
  constructor(all: readonly Gpu[], held: Readonly<Record<string, GpuHolder>>) {
    this.#all = all;
    for (const { id } of all) if (held[id] !== undefined) this.#holders.set(id, held[id]);
  }

  get held(): Record<string, GpuHolder> {
    return Object.fromEntries(this.#holders);
  }

  get free(): readonly Gpu[] {
    return this.#all.filter(({ id }) => !this.#holders.has(id));
  }

  of(owner: string): readonly Gpu[] {
    return this.#all.filter(({ id }) => this.#holders.get(id)?.owner === owner);
  }

  /** All of them or none. */
  take(holder: GpuHolder, count: number): readonly Gpu[] | undefined {
    const { free } = this;
    if (free.length < count) return undefined;
    const taken = free.slice(0, count);
    for (const { id } of taken) this.#holders.set(id, holder);
    return taken;
  }

  /** Another has what `owner` had. */
  pass(owner: string, to: GpuHolder): void {
    for (const { id } of this.of(owner)) this.#holders.set(id, to);
  }

  /** One backend has nothing left of `owner`, who has no more sandboxes: free is what others have nothing of either. */
  nothingLeft(owner: string, backend: string): void {
    for (const [id, holder] of this.#holders) {
      if (holder.owner !== owner || !holder.backends.includes(backend)) continue;
      const backends = holder.backends.filter((one) => one !== backend);
      if (backends.length > 0) this.#holders.set(id, { owner, backends });
      else this.#holders.delete(id);
    }
  }

  giveBack(isGone: (holder: GpuHolder) => boolean): void {
    for (const [id, holder] of this.#holders) if (isGone(holder)) this.#holders.delete(id);
  }
}
