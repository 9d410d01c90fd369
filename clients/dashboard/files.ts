// The files of the page: a fixed list, read once. No path comes from a request.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface PageFile {
  readonly type: string;
  readonly content: Buffer;
}

const HTML = 'text/html; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const JS = 'text/javascript; charset=utf-8';

const FILES: readonly (readonly [path: string, file: string, type: string])[] = [
  ['/', 'index.html', HTML],
  ['/style.css', 'style.css', CSS],
  ...[
    'main.js',
    'element.js',
    'load.js',
    'routes.js',
    'rpc.js',
    'words.js',
    'views/compare.js',
    'views/evaluation.js',
    'views/mesh.js',
    'views/parts.js',
    'views/picture.js',
    'views/session.js',
    'views/task.js',
    'views/tasks.js',
  ].map((file) => [`/${file}`, file, JS] as const),
];

/** By path of the request. */
export const pageFiles = (): ReadonlyMap<string, PageFile> =>
  new Map(
    FILES.map(([path, file, type]) => [
      path,
      { type, content: readFileSync(join(import.meta.dirname, 'page', file)) },
    ]),
  );
