// The tests of a row of SWE-bench, put into a fresh sandbox: its files as they were, then changed by its patch.
import type { ExecOutput } from '../../common/exec.ts';
import { GIT, inTime, WITHOUT_CACHES } from './repository.ts';
import type { Sandbox } from './sandbox.ts';

const PATCH_FILE = '/polar/session/evaluation.tests';

/** Files that the commit does not have are the agent's, or an older preparation's. */
const PUT = [
  'cd -- "$1" || exit',
  `git() { command ${GIT} --literal-pathspecs "$@"; }`,
  'top=$(git rev-parse --show-toplevel) && cd -- "$top" || exit',
  'patch=$2 check=$3 commit=$4',
  'shift 4',
  'git cat-file -e "$commit^{commit}" 2>/dev/null || commit=HEAD',
  'for path; do',
  'rm -rf -- "$path"',
  '! git cat-file -e "$commit:$path" 2>/dev/null || git checkout -q "$commit" -- "$path" || exit',
  'done',
  'git apply $check -v -p1 --whitespace=nowarn "$patch" || exit',
  ...WITHOUT_CACHES,
  'exit 0',
].join('\n');

export interface Tests {
  readonly patch: Uint8Array;
  /** Paths of its files. */
  readonly files: readonly string[];
  /** What they are at; the last commit, where the repository does not have it. */
  readonly commit: string;
}

/** `how`: to put them there, or to see whether that can be done. Throws EVALUATION_TIMEOUT. */
export async function putTests(
  fresh: Sandbox,
  repoDir: string,
  { patch, files, commit }: Tests,
  how: 'put' | 'check',
  timeoutMs: number,
): Promise<ExecOutput> {
  await fresh.putFile(PATCH_FILE, patch);
  const check = how === 'check' ? '--check' : '';
  const argv = ['sh', '-c', PUT, 'sh', repoDir, PATCH_FILE, check, commit, ...files];
  return inTime(await fresh.exec(argv, timeoutMs), 'the test patch was not applied');
}
