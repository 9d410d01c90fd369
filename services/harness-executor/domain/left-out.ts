// Packages that npm has left out of an installation without a word: optional ones that it could not fetch.

/** Of an entry of package-lock.json. */
export interface LockedPackage {
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly engines?: { readonly node?: string };
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export interface Machine {
  readonly os: string;
  readonly cpu: string;
  readonly libc: string;
  /** Version of Node.js. */
  readonly node: string;
}

/** Only the newest version is asked for, as nearly all do; whoever asks for another may be left out for that. */
const AT_LEAST = /^>=\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?$/;

/**
 * Paths of packages that are for this machine, wanted by one that is there, and not there themselves. `packages`: of
 * package-lock.json; what that does not know is not for this machine, or unknown to the registry, too.
 */
export function leftOut(
  packages: Readonly<Record<string, LockedPackage>>,
  isThere: (path: string) => boolean,
  machine: Machine,
): string[] {
  const wanted = Object.entries(packages)
    .filter(([path]) => path === '' || isThere(path))
    .flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).map((name) => placeOf(packages, path, name)),
    );
  const missing = wanted.filter((path) => path !== undefined && !isThere(path)) as string[];
  return [...new Set(missing)].filter((path) => isFor(machine, packages[path] ?? {})).sort();
}

/** Where a package finds another: in its own folder, or in one above. */
function placeOf(
  packages: Readonly<Record<string, unknown>>,
  from: string,
  name: string,
): string | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const place = at === '' ? `node_modules/${name}` : `${at}/node_modules/${name}`;
    if (place in packages) return place;
    if (at === '') return undefined;
  }
}

const isFor = (machine: Machine, { os, cpu, libc, engines }: LockedPackage): boolean =>
  takes(os, machine.os) && takes(cpu, machine.cpu) && takes(libc, machine.libc) && runsOn(machine, engines);

function takes(list: readonly string[] | undefined, value: string): boolean {
  if (list === undefined) return true;
  const named = list.filter((one) => !one.startsWith('!'));
  return !list.includes(`!${value}`) && (named.length === 0 || named.includes(value));
}

function runsOn({ node }: Machine, { node: range }: { readonly node?: string } = {}): boolean {
  if (range === undefined) return true;
  const least = AT_LEAST.exec(range.trim());
  if (least === null) return false;
  const has = node.split('.').map(Number);
  const asked = least.slice(1).map((part) => Number(part ?? 0));
  const differs = asked.findIndex((part, i) => part !== has[i]);
  return differs === -1 || (has[differs] ?? 0) > (asked[differs] ?? 0);
}
