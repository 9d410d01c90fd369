// npm run test:laws: the laws on many random call forests.
//   node test/laws/run.ts [--sessions 2000] [--seed 0]
import process from 'node:process';
import { parseArgs } from 'node:util';
import { checkForests } from './forests.ts';

const { values } = parseArgs({
  options: { sessions: { type: 'string', default: '2000' }, seed: { type: 'string', default: '0' } },
});
const say = (text: string): void => void process.stdout.write(`${text}\n`);

let failed = false;
for (const builder of ['prefix_merging', 'per_request']) {
  const checked = await checkForests(Number(values.sessions), builder, Number(values.seed));
  const { sessions, calls, traces, holes, repeated, report } = checked;
  // One trace for each call is what per_request is for; every other law holds for it, too.
  const bad = checked.breaches.filter(
    (breach) => builder !== 'per_request' || !/traces where \d+ suffice/.test(breach),
  );
  say(
    `${builder}: ${sessions} forests, ${calls} calls (${holes} more were missing, ${repeated} came twice), ${traces} traces: ${bad.length} breaches`,
  );
  say(`  ${JSON.stringify({ trained: report['trained_tokens'], masked: report['masked_tokens'] })}`);
  for (const breach of bad) say(`  ${breach}`);
  failed ||= bad.length > 0;
}
process.exitCode = failed ? 1 : 0;
