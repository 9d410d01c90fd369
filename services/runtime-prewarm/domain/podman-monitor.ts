// Podman's monitors, by their command lines.

/** The container that a monitor of one of its commands names; the container's own has its id twice. */
export function monitoredIn(commandLine: string): string | undefined {
  const [program = '', ...args] = commandLine.split('\0');
  if (!/(^|\/)conmon$/.test(program)) return undefined;
  const after = (flag: string): string | undefined =>
    args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined;
  const [container, watched] = [after('-c'), after('-u')];
  return watched === undefined || watched === container ? undefined : container;
}
