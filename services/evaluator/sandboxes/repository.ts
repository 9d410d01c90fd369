// The changes that an agent made to a repository, taken from its sandbox and put into a fresh one.
import { PolarError } from '../../common/errors.ts';
import type { ExecOutput } from '../../common/exec.ts';
import { BASE_COMMITS_MAX } from '../../common/limits.ts';
import { findExpression } from '../domain/glob.ts';
import type { Sandbox } from './sandbox.ts';

const PATCH_FILE = '/polar/session/evaluation.patch';
/** Ownership differs between users of a sandbox; what else a repository's or a user's settings say must not matter. */
export const GIT =
  'git -c safe.directory="*" -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.quotepath=true -c core.autocrlf=false';
const DIFF =
  '--binary --full-index --no-renames --no-color --no-ext-diff --no-textconv --src-prefix=a/ --dst-prefix=b/';

/**
 * Trees of the commits of a repository as `prepare` leaves it, newest first: equal trees have equal ids wherever and
 * whenever they were committed. Throws INVALID_TASK where there is none, EVALUATION_TIMEOUT.
 */
export async function baseTrees(fresh: Sandbox, repoDir: string, timeoutMs: number): Promise<string[]> {
  const script = `cd -- "$1" && ${GIT} log -n ${BASE_COMMITS_MAX} --format=%T HEAD`;
  const output = await fresh.exec(['sh', '-c', script, 'sh', repoDir], timeoutMs);
  const { stdout, stderr, result } = inTime(output, 'the commits of repo_dir were not read');
  const trees = text(stdout)
    .split('\n')
    .filter((line) => line !== '');
  if (result.exitCode === 0 && trees.length > 0) return trees;
  const why = text(stderr).trim().slice(-500);
  throw new PolarError(
    'INVALID_TASK',
    `evaluator.config.repo_dir: ${repoDir} is no git repository with a commit after \`prepare\` (${why}). Commit it in \`prepare\`, or set patch_command`,
  );
}

/** `git add` with --ignore-errors: it did what it could. */
const ADDED_IN_PART = 1;
/** What it says of files that cannot be added; of what it could not write it says something else. */
const NOT_ADDED = [
  String.raw`open\(.*\): Permission denied`,
  `unable to index file '.*'`,
  `'.*' does not have a commit checked out`,
  '.*: can only add regular files, symbolic links or git-directories',
  `invalid path '.*'`,
  `unable to add '.*' to index`,
].join('|');
/** Paths of `left out` that are told. */
const LEFT_OUT_TOLD_MAX = 100;
/** Before each of them: git's own warnings go to standard error, too. */
const LEFT_OUT = 'left-out:';
/** A line for a repository that knows none of the commits. */
const NO_BASE = 'no-base';

/**
 * All changes since the newest of `trees` that the repository knows, committed or not, new files too. Where it knows none
 * of them, since its last commit, and standard error says so. Of the agent's own index, which may say anything, no more is used
 * than names: those of ignored files that were added all the same. Standard error lists what git cannot add, marked: repositories inside this one, and what it cannot read. Where it cannot
 * write, it is a failure.
 */
const EXTRACT = [
  'cd -- "$1" || exit',
  'shift',
  `top=$(${GIT} rev-parse --show-toplevel) && cd -- "$top" || exit`,
  'base=',
  `for tree; do if ${GIT} cat-file -e "$tree^{tree}" 2>/dev/null; then base=$tree; break; fi; done`,
  `[ -n "$base" ] || { base=$(${GIT} rev-parse --verify "HEAD^{tree}") || exit; echo ${NO_BASE} >&2; }`,
  'temp=$(mktemp -d) || exit',
  'trap \'rm -rf "$temp"\' EXIT',
  `${GIT} ls-files -ciz --exclude-standard >"$temp/forced" 2>/dev/null`,
  'export GIT_INDEX_FILE="$temp/index"',
  // What git says is read, and a path is bytes.
  'export LC_ALL=C',
  `${GIT} read-tree "$base" || exit`,
  `not_added="^error: (${NOT_ADDED})$"`,
  `only_files() { [ "$1" -eq ${ADDED_IN_PART} ] && ! grep "^error:" "$temp/said" | grep -Evq "$not_added"; }`,
  `${GIT} add -A --ignore-errors >"$temp/said" 2>&1 || only_files $? || { cat "$temp/said" >&2; exit 1; }`,
  // All of them or none; none where one has become a folder, or cannot be read.
  `${GIT} update-index --add --remove -z --stdin <"$temp/forced" 2>/dev/null`,
  // Of a repository with a commit git adds the name of the commit.
  `repositories=':[0-7]* 160000 '`,
  `{ ${GIT} ls-files --others --modified --exclude-standard`,
  `${GIT} diff-index --cached --diff-filter=d "$base" | grep "^$repositories" | cut -f2`,
  `sed -n "s/^warning: could not open directory '\\(.*\\)': .*/\\1/p" "$temp/said"`,
  `} 2>/dev/null | head -n ${LEFT_OUT_TOLD_MAX} | sed 's/^/${LEFT_OUT}/' >&2`,
  `${GIT} diff-index --cached -p ${DIFF} "$base"`,
].join('\n');

/** Whether what the agent has committed cannot be told from what was there before. */
export const lacksBase = ({ stderr }: ExecOutput): boolean => text(stderr).split('\n').includes(NO_BASE);

/** Paths that `extractChanges` could not take. */
export const leftOutOf = ({ stderr }: ExecOutput): string[] =>
  text(stderr)
    .split('\n')
    .filter((line) => line.startsWith(LEFT_OUT))
    .map((line) => line.slice(LEFT_OUT.length));

export const extractChanges = (
  live: Sandbox,
  repoDir: string,
  trees: readonly string[],
  timeoutMs: number,
): Promise<ExecOutput> => live.exec(['sh', '-c', EXTRACT, 'sh', repoDir, ...trees], timeoutMs);

/** A shell command of the task, in the folder that it is about. */
export const execIn = (
  sandbox: Sandbox,
  folder: string,
  command: string,
  timeoutMs: number,
): Promise<ExecOutput> =>
  sandbox.exec(['sh', '-c', 'cd -- "$1" && exec sh -c "$2"', 'sh', folder, command], timeoutMs);

/** What has ended. Throws EVALUATION_TIMEOUT: a machine that is slow tells nothing of an agent, nor of a task. */
export function inTime(output: ExecOutput, what: string): ExecOutput {
  if (!output.result.timedOut) return output;
  throw new PolarError('EVALUATION_TIMEOUT', `${what} within apply_timeout`);
}

/** Python compiles a file anew where its second or its size is another, and `prepare` may have run just now. */
export const WITHOUT_CACHES = [
  `caches='s|^+++ [^/]*/\\(.*/\\)\\{0,1\\}[^/]*\\.py[[:space:]]*$|./\\1__pycache__|p'`,
  `sed -n "$caches" "$patch" | LC_ALL=C sort -u | tr '\\n' '\\0' | xargs -0 rm -rf -- 2>/dev/null`,
];

const APPLIED_BY_GIT = 0;
const APPLIED_BY_PATCH = 10;
const NO_FOLDER = 11;
const NO_PROGRAM = 12;
const APPLY = [
  `cd -- "$1" || exit ${NO_FOLDER}`,
  'patch=$2',
  'shift 2',
  `command -v git >/dev/null || command -v patch >/dev/null || exit ${NO_PROGRAM}`,
  `top=$(${GIT} rev-parse --show-toplevel 2>/dev/null) && cd -- "$top"`,
  // What is to be left out, with what is below it. Links lead `patch` to files by other names. One find has one `{}`.
  `summed='find "$@" -type f -exec cksum "{""}" + -o -print'`,
  'left_out() { [ $# -eq 0 ] || find . \\( "$@" \\) -prune -exec sh -c "$summed" sh {} + 2>/dev/null | LC_ALL=C sort; }',
  'before=$(left_out "$@")',
  // Nor git's own files, by links of the patch: a hook or a setting would run where the tests ask git for theirs.
  `own() { find .git \\( -name objects -o -name lfs \\) -prune -o -type f -exec cksum {} + -o -print 2>/dev/null | LC_ALL=C sort; }`,
  'own_before=$(own)',
  `how=${APPLIED_BY_GIT}`,
  `${GIT} apply -v -p1 --whitespace=nowarn "$patch" || how=${APPLIED_BY_PATCH}`,
  // Forward: it would take away what is there already, and say that all is well.
  `[ $how -eq ${APPLIED_BY_GIT} ] || patch --batch --forward --fuzz=5 --no-backup-if-mismatch -p1 -i "$patch" || exit 1`,
  '[ "$(left_out "$@")" = "$before" ] || { echo "it changes files that exclude_patterns names" >&2; exit 1; }',
  '[ "$(own)" = "$own_before" ] || { echo "it changes files of .git" >&2; exit 1; }',
  ...WITHOUT_CACHES,
  'exit $how',
].join('\n');

const PATHS_FILE = '/polar/session/evaluation.paths';
/**
 * A line for each path: its mode, and the id of what is no file; none where there is nothing of that name. Behind them the
 * ids of the files. Nothing at all where the patch applies as it is.
 */
const PRESENT = [
  'cd -- "$1" || exit',
  `top=$(${GIT} rev-parse --show-toplevel 2>/dev/null) && cd -- "$top" || exit`,
  `${GIT} apply --check -p1 --whitespace=nowarn "$2" 2>/dev/null && exit`,
  'files=$(mktemp) || exit',
  'while IFS= read -r path; do',
  `if [ -L "$path" ]; then echo "120000 $(readlink -n -- "$path" | ${GIT} hash-object --stdin)"`,
  'elif [ -f "$path" ]; then',
  '[ -x "$path" ] && echo 100755 || echo 100644',
  `printf '%s\\n' "$path" >>"$files"`,
  'elif [ -e "$path" ]; then echo "040000 -"',
  'else echo; fi',
  'done <"$3"',
  `${GIT} hash-object --stdin-paths <"$files"; rm -f "$files"`,
].join('\n');
/** Of a line for each, git reads these otherwise. */
const UNASKED = /\n|^"/;

/** What a fresh sandbox has of some paths, as `mode id`; empty: nothing. None where the patch applies as it is. */
export async function presentIn(
  fresh: Sandbox,
  repoDir: string,
  patch: Uint8Array,
  paths: readonly string[],
  timeoutMs: number,
): Promise<ReadonlyMap<string, string>> {
  const asked = paths.filter((path) => !UNASKED.test(path));
  await fresh.putFile(PATCH_FILE, patch);
  await fresh.putFile(PATHS_FILE, Buffer.from(asked.map((path) => `${path}\n`).join('')));
  const output = await fresh.exec(['sh', '-c', PRESENT, 'sh', repoDir, PATCH_FILE, PATHS_FILE], timeoutMs);
  const lines = text(inTime(output, 'the patch was not applied').stdout).split('\n').slice(0, -1);
  const ids = lines.splice(asked.length);
  const files = lines.filter((line) => FILE.test(line));
  if (lines.length < asked.length || ids.length !== files.length) return new Map();
  return new Map(
    asked.map((path, i) => [
      path,
      FILE.test(lines[i] ?? '') ? `${lines[i]} ${ids.shift()}` : (lines[i] ?? ''),
    ]),
  );
}

const FILE = /^100(?:644|755)$/;

export interface Application {
  /** `git`, `patch`, or undefined where neither could. */
  readonly appliedBy: 'git' | 'patch' | undefined;
  readonly output: ExecOutput;
}

export interface Patch {
  readonly bytes: Uint8Array;
  /** Globs of files that are not to be changed, whatever it says. */
  readonly leftOut: readonly string[];
}

/** Apply a patch in a fresh sandbox. Throws INVALID_TASK where that lacks `repoDir`, or a program to do it. */
export async function applyPatch(
  fresh: Sandbox,
  repoDir: string,
  { bytes, leftOut }: Patch,
  timeoutMs: number,
): Promise<Application> {
  await fresh.putFile(PATCH_FILE, bytes);
  const argv = ['sh', '-c', APPLY, 'sh', repoDir, PATCH_FILE, ...findExpression(leftOut)];
  const output = await fresh.exec(argv, timeoutMs);
  const { exitCode } = output.result;
  if (exitCode === NO_FOLDER) throw lacking(`no ${repoDir} (evaluator.config.repo_dir)`);
  if (exitCode === NO_PROGRAM) throw lacking('neither git nor patch');
  const how = exitCode === APPLIED_BY_GIT ? 'git' : exitCode === APPLIED_BY_PATCH ? 'patch' : undefined;
  return { appliedBy: how, output };
}

/** It was never the agent's. */
const lacking = (what: string): PolarError =>
  new PolarError('INVALID_TASK', `changes cannot be applied: a fresh sandbox has ${what}`);

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
