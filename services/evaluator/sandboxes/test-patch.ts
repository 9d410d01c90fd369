// The tests of a row of SWE-bench, put into a fresh sandbox: its files as they were, then changed by its patch.
import type { ExecOutput } from '../../common/exec.ts';
import { GIT, inTime, WITHOUT_CACHES } from './repository.ts';
import type { Sandbox } from './sandbox.ts';

const PATCH_FILE = '/polar/session/evaluation.tests';

const BEGIN = [
  'cd -- "$1" || exit',
  `git() { command ${GIT} --literal-pathspecs "$@"; }`,
  'top=$(git rev-parse --show-toplevel) && cd -- "$top" || exit',
  'patch=$2 commit=$3',
  'shift 3',
  'git cat-file -e "$commit^{commit}" 2>/dev/null || commit=HEAD',
];
/** Files that the commit does not have are the agent's, or an older preparation's. */
const FILES = [
  'for path; do',
  'rm -rf -- "$path"',
  '! git cat-file -e "$commit:$path" 2>/dev/null || git checkout -q "$commit" -- "$path" || exit',
  'done',
];
const PUT = [
  ...BEGIN,
  ...FILES,
  'git apply -v -p1 --whitespace=nowarn "$patch" || exit',
  ...WITHOUT_CACHES,
  'exit 0',
].join('\n');
/** Then all is as it was: the agent's changes are against that, and may be about the same files. */
const CHECK = [
  ...BEGIN,
  'kept=$(mktemp -d) || exit',
  'copy() { { [ ! -e "$1" ] && [ ! -L "$1" ]; } || cp -a -- "$1" "$2"; }',
  'at=0; for path; do at=$((at + 1)); copy "$path" "$kept/$at" || exit; done',
  'cp "$(git rev-parse --git-path index)" "$kept/index" 2>/dev/null',
  'export GIT_INDEX_FILE="$kept/index"',
  ...FILES,
  'git apply --check -v -p1 --whitespace=nowarn "$patch"; how=$?',
  'at=0; for path; do at=$((at + 1)); rm -rf -- "$path"; copy "$kept/$at" "$path" || exit; done',
  'rm -rf -- "$kept"; exit $how',
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
  const argv = ['sh', '-c', how === 'check' ? CHECK : PUT, 'sh', repoDir, PATCH_FILE, commit, ...files];
  return inTime(await fresh.exec(argv, timeoutMs), 'the test patch was not applied');
}
