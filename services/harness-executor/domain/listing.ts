// Which files of a sandbox lie where something is to be kept.

/**
 * Prints for each argument the files below it, or `.` for a file, each ended by NUL, and one more NUL behind all. Ends with 1
 * where it could not look everywhere. Small images have no `find`.
 */
export const LISTING_SCRIPT = [
  'walk() {',
  '  for file in "$1"/* "$1"/.[!.]* "$1"/..?*; do',
  '    if [ -h "$file" ]; then continue; fi',
  '    if [ -d "$file" ]; then walk "$file"; elif [ -f "$file" ]; then printf "%s\\0" "$file"; fi',
  '  done',
  '}',
  'if command -v find > /dev/null; then walk() { find . -type f -print0; }; fi',
  'status=0',
  'for path do',
  '  if [ -d "$path" ]; then (cd "$path" && walk .) || status=1',
  '  elif [ -f "$path" ]; then printf ".\\0"',
  '  fi',
  '  printf "\\0"',
  'done',
  'exit "$status"',
].join('\n');

/** Absolute paths by root, from what the script printed; what stands last and was cut is left out. */
export function listed(roots: readonly string[], output: Uint8Array): { root: string; path: string }[] {
  const found: { root: string; path: string }[] = [];
  let n = 0;
  const names = Buffer.from(output).toString().split('\0').slice(0, -1);
  for (const name of names) {
    const root = roots[n];
    if (root === undefined) break;
    if (name === '') n++;
    else found.push({ root, path: name === '.' ? root : `${root}/${name.slice('./'.length)}` });
  }
  return found;
}
