// What a launcher of sandboxes is told for one command, whichever program it is.

export interface LaunchOptions {
  /** Folder that becomes `/`, as the launcher sees it. */
  readonly root: string;
  /** Folders shown read-only, source to target. */
  readonly readOnly: readonly (readonly [source: string, target: string])[];
  /** The same, files too, where the source may be missing. */
  readonly readOnlyTry: readonly (readonly [source: string, target: string])[];
  /** Device files that can be used inside. */
  readonly devices: readonly (readonly [source: string, target: string])[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** `outside`: the manager writes the id map, as host root; `own`: the launcher maps root inside to the present user. */
  readonly idMap: 'outside' | 'own';
}

/** Descriptors. */
export interface LaunchFds {
  /** It tells on it which process is the first inside, and what became of the command. */
  readonly status: number;
  /** It reads its arguments from it. */
  readonly args: number;
  /** It waits for it. */
  readonly block: number;
  /** A program for the kernel's filter of system calls. */
  readonly seccomp: number;
  /** Of no use but to bwrap. */
  readonly unread: number;
}
