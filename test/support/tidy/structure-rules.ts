// Rules on where files are and how they hang together.
import { posix } from 'node:path';
import { type Fault, isScript, isTest, type Rule, type Tree } from './tree.ts';

const SERVICES = [
  'scheduler',
  'runtime-prewarm',
  'harness-executor',
  'llm-proxy',
  'reconstructor',
  'evaluator',
] as const;

const TOP_FILES = [
  'main.ts',
  'config.ts',
  'context.ts',
  'service.ts',
  'events.ts',
  'metrics.ts',
  'README.md',
] as const;
const FOLDERS = ['routes', 'consumers', 'domain'] as const;

/** Commands of a service that are run on their own. */
const EXTRA_FILES = new Set(['services/harness-executor/install.ts', 'services/reconstructor/rebuild.ts']);

/** All six services have the same files and folders at the top. */
export const sameLayout: Rule = ({ files }) =>
  SERVICES.flatMap((service) => {
    const base = `services/${service}/`;
    const inside = files.filter((file) => file.startsWith(base)).map((file) => file.slice(base.length));
    const missing = TOP_FILES.filter((name) => !inside.includes(name));
    const bare = FOLDERS.filter((folder) => !inside.some((file) => file.startsWith(`${folder}/`)));
    const odd = inside.filter(
      (file) =>
        !file.includes('/') &&
        !(TOP_FILES as readonly string[]).includes(file) &&
        !isTest(file) &&
        !EXTRA_FILES.has(base + file),
    );
    return [
      ...missing.map((name) => whole(base + name, 'is missing; the six services are laid out alike')),
      ...bare.map((folder) => whole(`${base}${folder}/`, 'is missing; the six services are laid out alike')),
      ...odd.map((file) => whole(base + file, 'is at the top of no other service; put it in a folder')),
    ];
  });

/** Each RPC of a service's proto has its file in routes/, and routes/ has no others. */
export const oneRpcOneFile: Rule = (tree) =>
  SERVICES.flatMap((service) => {
    const folder = `services/${service}/routes/`;
    const wanted = rpcsOf(tree, service).map((rpc) => `${folder}${kebab(rpc)}.ts`);
    const there = tree.files.filter((file) => file.startsWith(folder) && !isTest(file));
    return [
      ...wanted
        .filter((file) => !there.includes(file))
        .map((file) => whole(file, 'is missing: one RPC, one file')),
      ...there
        .filter((file) => file !== `${folder}index.ts` && !wanted.includes(file))
        .map((file) => whole(file, 'is named after no RPC of the service')),
    ];
  });

/** A service's README tells all its RPCs, its environment, its failures and what to do. */
export const readmes: Rule = (tree) =>
  SERVICES.flatMap((service) => {
    const file = `services/${service}/README.md`;
    if (!tree.files.includes(file)) return [];
    const text = tree.read(file);
    const headings = text.split('\n').filter((line) => line.startsWith('#'));
    const sections = [/rpc/i, /subject|nats/i, /env/i, /fail/i, /runbook/i];
    return [
      ...sections
        .filter((section) => !headings.some((heading) => section.test(heading)))
        .map((section) => whole(file, `has no section for ${section.source}`)),
      ...rpcsOf(tree, service)
        .filter((rpc) => !text.includes(rpc))
        .map((rpc) => whole(file, `does not tell of ${rpc}`)),
    ];
  });

/** Routes and consumers know the context's type; who makes it is none of their business. */
export const contextAsType: Rule = ({ files, read }) =>
  files
    .filter((file) => /^services\/[^/]+\/(routes|consumers)\//.test(file) && !isTest(file))
    .flatMap((file) => {
      const found = /^import (?!type )\{([^}]*)\} from '\.\.\/context\.ts'/m.exec(read(file));
      const values = (found?.[1] ?? '').split(',').filter((name) => !/^\s*(type\s|$)/.test(name));
      return values.length === 0
        ? []
        : [whole(file, `takes ${values.join().trim()} from context.ts, not a type`)];
    });

/** Links in Markdown, and documents that any file names, exist. */
export const linksExist: Rule = (tree) => {
  const known = new Set(tree.files);
  const folders = new Set(tree.files.flatMap(parents));
  return tree.files.flatMap((file) => {
    const links = file.endsWith('.md') ? [...tree.read(file).matchAll(/\]\(([^)\s]+)\)/g)] : [];
    const named = [...tree.read(file).matchAll(/(?<![\w/.-])(docs\/[\w/-]+\.md)/g)];
    const targets = [
      ...links
        .map(([, link = '']) => link)
        .filter((link) => !/^(\w+:|#)/.test(link))
        .map((link) => {
          return posix.join(posix.dirname(file), link.replace(/#.*/, '')).replace(/\/$/, '');
        }),
      ...named.map(([, path = '']) => path),
    ];
    return [...new Set(targets)]
      .filter((target) => !known.has(target) && !folders.has(target))
      .map((target) => whole(file, `names ${target}, which is not there`));
  });
};

/** A script is imported or named by another that is used; tests alone keep only tests and examples alive. */
export const noDeadFiles: Rule = (tree) => {
  const scripts = tree.files.filter(
    (file) => /\.(ts|mjs|js|sh|py)$/.test(file) && !file.startsWith('clients/python/'),
  );
  const production = scripts.filter((file) => !isTest(file));
  const alive = reached(
    tree,
    production,
    production.filter((file) => isEntry(tree, file)),
  );
  const tested = reached(
    tree,
    scripts,
    scripts.filter((file) => /\.test\.ts$/.test(file) || isEntry(tree, file)),
  );
  return scripts
    .filter((file) => !(isTest(file) || file.startsWith('examples/') ? tested : alive).has(file))
    .map((file) => whole(file, 'is used by nothing'));
};

const ENTRY =
  /^(services\/[^/]+\/main\.ts|clients\/cli\/main\.ts|bin\/[^/]+|deploy\/.+|examples\/[^/]+\/(main\.ts|[^/]+\.py))$/;

function isEntry(tree: Tree, file: string): boolean {
  return ENTRY.test(file) || EXTRA_FILES.has(file) || tree.read('package.json').includes(file);
}

/** What can be got to from `entries`, by import or by a string that ends in the file's name. */
function reached(tree: Tree, files: readonly string[], entries: readonly string[]): Set<string> {
  const byName = Map.groupBy(files, (file) => posix.basename(file));
  const seen = new Set(entries);
  const queue = [...entries];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    for (const next of uses(tree.read(file), file, files, byName)) {
      if (!seen.has(next)) queue.push(next);
      seen.add(next);
    }
  }
  return seen;
}

function uses(
  text: string,
  file: string,
  files: readonly string[],
  byName: ReadonlyMap<string, readonly string[]>,
): string[] {
  if (file.endsWith('.py')) return modules(text, file, files);
  if (!isScript(file)) return [];
  const strings = [...text.matchAll(/['"`]([^'"`\n]*?([\w.-]+\.(?:ts|mjs|js|sh|py)))['"`]/g)];
  return strings.flatMap(([, path = '', name = '']) => {
    if (!path.startsWith('.')) return byName.get(name) ?? [];
    const resolved = posix.join(posix.dirname(file), path);
    return files.includes(resolved) ? [resolved] : [];
  });
}

/** Modules of its own folder that a Python program imports. */
function modules(text: string, file: string, files: readonly string[]): string[] {
  const names = [...text.matchAll(/^(?:from|import) (\w+)/gm)].map(([, name = '']) => name);
  return names
    .map((name) => posix.join(posix.dirname(file), `${name}.py`))
    .filter((one) => files.includes(one));
}

function rpcsOf({ files, read }: Tree, service: string): string[] {
  const folder = `proto/polar/${service.replaceAll('-', '_')}/v1/`;
  const protos = files.filter((file) => file.startsWith(folder) && file.endsWith('_service.proto'));
  return protos.flatMap((file) => [...read(file).matchAll(/^\s*rpc (\w+)/gm)].map(([, rpc = '']) => rpc));
}

const kebab = (name: string): string => name.replace(/(?<!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase();

const whole = (file: string, message: string): Fault => ({ file, line: 0, message });

function parents(file: string): string[] {
  const up = posix.dirname(file);
  return up === '.' ? [] : [up, ...parents(up)];
}
