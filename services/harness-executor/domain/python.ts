// Which Python of a machine or a sandbox a program from PyPI runs on.

/** Where one is, and its version, as `3.12`. */
export interface Python {
  readonly path: string;
  readonly version: string;
}

/** What is looked at, in this order: a sandbox may have several. */
const NAMES = [
  ...['/usr/local/bin/python3', '/usr/bin/python3', 'python3'],
  ...[15, 14, 13, 12, 11, 10].map((minor) => `python3.${minor}`),
];

/** Prints path and version of the first that is new enough, and is otherwise silent on standard output; else it fails. */
const SCRIPT = `for name in ${NAMES.join(' ')}; do
  path=$(command -v "$name") || continue
  version=$("$path" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || continue
  minor=\${version#3.}
  [ "$minor" -ge "$1" ] && echo "$path $version" && exit
  echo "$version" >&2
done
exit 1`;

const minorOf = (version: string): number => Number(version.replace(/^3\./, ''));

export const isAtLeast = (version: string, min = '3.0'): boolean => minorOf(version) >= minorOf(min);

/** A command that finds one that is at least `min`, as `3.12`. */
export const findPython = (min = '3.0'): string[] => ['sh', '-c', SCRIPT, 'sh', String(minorOf(min))];

/** What that command printed; undefined: there is none. */
export function pythonFound(printed: string): Python | undefined {
  const [, path, version] = /^(\/\S+) (3\.\d+)\n$/.exec(printed) ?? [];
  return path === undefined || version === undefined ? undefined : { path, version };
}

/** "Python 3.12 or newer" */
export const wantedPython = (min: string | undefined): string =>
  min === undefined ? 'Python 3' : `Python ${min} or newer`;
