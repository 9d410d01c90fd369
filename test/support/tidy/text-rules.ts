// Rules on the text of single files.
import { isScript, isSource, isTest, matches, type Rule } from './tree.ts';

/** Above it a file does more than one thing. */
const FILE_LINES_MAX = 400;

export const fileLength: Rule = ({ files, read }) =>
  files
    .filter(isSource)
    .map((file) => ({ file, lines: read(file).trimEnd().split('\n').length }))
    .filter(({ lines }) => lines > FILE_LINES_MAX)
    .map(({ file, lines }) => ({ file, line: 0, message: `${lines} lines, at most ${FILE_LINES_MAX}` }));

const MARKS = /\b(TODO|FIXME|HACK|XXX)\b/;

/** Debts are issues, not comments. */
export const noMarks: Rule = (tree) =>
  matches(tree, tree.files.filter(isText), MARKS, (mark) => `${mark}: do it or open an issue`);

/** A test that is left out, or leaves the others out. What needs a part that is not there calls this.skip(). */
export const noLeftOutTests: Rule = (tree) =>
  matches(
    tree,
    tree.files.filter((file) => isTest(file) && isScript(file)),
    /\b((?:describe|it|context)\.(?:only|skip)|x(?:it|describe))\(/,
    (call) => `${call} leaves tests out`,
  );

/** Paths that exist on one machine only. */
export const noMachinePaths: Rule = (tree) =>
  matches(
    tree,
    tree.files.filter(isText),
    /(?<![\w.}>])(\/(?:work|home|Users)\/[\w.-]+)/,
    (path) => `${path} is a path of one machine`,
  );

/** Packages come from wherever the machine's package managers are told to look. */
export const noRegistryHosts: Rule = (tree) =>
  matches(
    tree,
    tree.files.filter(isText),
    /(registry\.npm\w*\.\w+|\bpypi\.[a-z]{3}\b|python\w*hosted\.\w+|\b(?:artifactory|nexus|verdaccio)[.\w-]*\.\w{2,}|--(?:registry|index-url|extra-index-url)[= ]https?:)/i,
    (host) => `${host} names a registry`,
  );

export const noResolvedInLock: Rule = (tree) =>
  matches(
    tree,
    tree.files.filter((file) => /(^|\/)package-lock\.json$/.test(file)),
    /^\s*("resolved"):/,
    () => 'a resolved address ties the lock to a registry (.npmrc: omit-lockfile-registry-resolved)',
  );

/** Words that mean what a word of docs/glossary.md means. */
const SYNONYMS: readonly (readonly [RegExp, string])[] = [
  [/\b(response_?mask|responseMask)\b/i, 'loss_mask'],
  [/\b(log_probs?|logProbs?)\b/, 'logprobs'],
  [/\b(completion_ids|completionIds)\b/, 'response_ids'],
  [/\b(episodes?)\b/i, 'session'],
  [/\b(rollout_?id|rolloutId)\b/i, 'session_id'],
  [/\b(sandbox_?id|sandboxId|container_?id)\b/i, 'runtime_id'],
  [/\b(graders?|scorers?)\b/i, 'evaluator'],
  [/\b(retry_?count|retryCount|try_?number)\b/i, 'attempt'],
  [/\b(model_version|modelVersion|weights_version)\b/, 'policy_version'],
  [/\b(subscriber_?(?:id|name)?)\b/i, 'consumer'],
];

/** Code, protos and clients speak one vocabulary. What adapts to engines and trainers has names that are not ours. */
export const noSynonyms: Rule = (tree) => {
  const files = tree.files.filter(
    (file) =>
      /^(proto|services|clients)\//.test(file) &&
      isSource(file) &&
      !/\/(engines|dialects|bridges|trainers)\//.test(file),
  );
  return SYNONYMS.flatMap(([pattern, word]) =>
    matches(tree, files, pattern, (found) => `${found}: the word is ${word}`),
  );
};

/** Streams, subjects and buckets are named in one place. Comments may speak of them. */
export const natsNamesInOnePlace: Rule = (tree) => {
  const files = tree.files.filter(
    (file) =>
      /^(services|clients|tools|bin)\//.test(file) &&
      isScript(file) &&
      !isTest(file) &&
      !file.startsWith('services/common/nats/'),
  );
  const name =
    /^(?!\s*(?:\/\/|\*|\/\*)).*?['"`](POLAR_(?:STATE|SNAPSHOT|WORK|FACTS|COMPLETIONS|TRAJECTORIES|BLOBS|DEAD)\b|polar\.v1\.|polar_(?:cursors|policy|capabilities)\b)/;
  return matches(tree, files, name, (found) => `${found} is named in services/common/nats only`);
};

/** Domain code gets time, randomness and output as arguments. */
export const pureDomain: Rule = (tree) => {
  const files = tree.files.filter((file) => /^services\/[^/]+\/domain\//.test(file) && !isTest(file));
  const impure =
    /\b(Date\.now|Math\.random|performance\.now|new Date\(\)|crypto\.getRandomValues|random(?:Bytes|UUID|Int)|set(?:Timeout|Interval|Immediate)\(|console\.|process\.|fetch\(|import\()/;
  return matches(tree, files, impure, (found) => `${found} in domain code: take it as an argument`);
};

const isText = (file: string): boolean => !/(^|\/)(package-lock\.json|LICENSE)$/.test(file);
