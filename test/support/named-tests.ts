// Tests that a document names: "`file`: title; `file`: title", where … stands for what varies.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const QUOTES = ["'", '"', '`'];

/** Those that are not there. */
export function missingTests(cell: string): string[] {
  return cell.split(/; (?=`)/).filter((one) => {
    const [, file = '', title = ''] = /^`([^`]+)`: (.+)$/.exec(one) ?? [];
    if (file === '' || !existsSync(join(ROOT, file))) return true;
    const source = readFileSync(join(ROOT, file), 'utf8').replaceAll(/\$\{.*?\}/g, '…');
    return !QUOTES.some((quote) => source.includes(`it(${quote}${title}${quote}`));
  });
}
