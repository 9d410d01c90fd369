// npm run test:harnesses [-- codex pi]: each harness solves the calculator task in each kind of sandbox, through a whole
// mesh, against the scripted engine. Writes what was run to docs/harnesses.md where all were.
//   --places A,B   of bubblewrap, apptainer, docker, podman
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { HARNESSES } from '../../services/common/specs/catalogue.ts';
import { startMesh } from '../support/mesh.ts';
import { openPlace, PLACES, type PlaceName } from './places.ts';
import { isSolved, type Ran, scriptIn, solve } from './solve.ts';
import { cellOf, tableOf } from './table.ts';

const PAGE = join(import.meta.dirname, '../../docs/harnesses.md');
const TABLE = /(?<=<!-- table: run -->\n)[\s\S]*?(?=<!-- end -->)/;

const { values: flags, positionals } = parseArgs({
  options: { places: { type: 'string', default: PLACES.join(',') } },
  allowPositionals: true,
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);

function chosen<T extends string>(all: readonly T[], names: readonly string[]): T[] {
  const unknown = names.find((name) => !(all as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`no ${unknown}: ${all.join(', ')}`);
  return all.filter((name) => names.includes(name));
}

/** One after the other: the times are those of a harness alone. */
async function runIn(name: PlaceName, harnesses: readonly string[]): Promise<Ran[]> {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-harnesses-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const place = await openPlace(name, stack);
  const mesh = stack.use(await startMesh({ engineFlags: ['--script', scriptIn(folder)], ...place.mesh }));
  const all: Ran[] = [];
  for (const harness of harnesses) {
    const ran = await solve(mesh, harness, place);
    all.push(ran);
    say(`${isSolved(ran) ? 'ok    ' : 'FAILED'} ${name} ${harness}: ${cellOf(ran)}`);
    if (!isSolved(ran)) say(`${ran.session.failure?.message ?? ''}\n${ran.complaint}`);
  }
  return all;
}

function renew(all: readonly Ran[]): void {
  const day = new Date().toISOString().slice(0, 10);
  const page = readFileSync(PAGE, 'utf8');
  writeFileSync(PAGE, page.replace(TABLE, `Last run: ${day}.\n\n${tableOf(all)}`));
}

async function main(): Promise<boolean> {
  const harnesses = positionals.length === 0 ? [...HARNESSES] : chosen(HARNESSES, positionals);
  const places = chosen(PLACES, flags.places.split(','));
  const all: Ran[] = [];
  for (const place of places) all.push(...(await runIn(place, harnesses)));
  if (harnesses.length === HARNESSES.length && places.length === PLACES.length) renew(all);
  return all.every(isSolved);
}

if (!(await main())) process.exitCode = 1;
