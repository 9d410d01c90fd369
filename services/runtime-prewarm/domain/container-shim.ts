// Processes of a container, by what the kernel tells of them.

/** The container that a shim of containerd runs; undefined: it is no shim. */
export function shimOf(commandLine: string): string | undefined {
  const [program = '', ...args] = commandLine.split('\0');
  if (!/(^|\/)containerd-shim[^/]*$/.test(program)) return undefined;
  return args.includes('-id') ? args[args.indexOf('-id') + 1] : undefined;
}

/** The container whose control groups a process is in: engines name them after it; undefined: in none. */
export const containerIn = (groups: string): string | undefined =>
  /\/(?:[a-z]+-)?([0-9a-f]{64})(?:\.scope)?(?:\/|$)/m.exec(groups)?.[1];
