// Starts a scripted engine; prints one line, {"url": …}, when it listens.
import process from 'node:process';
import { readOptions, USAGE } from './options.ts';
import { startEngine } from './server.ts';

try {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) process.stdout.write(USAGE);
  else await run(options, options.lifeline);
} catch (error) {
  process.stderr.write(`scripted-engine: ${(error as Error).message}\n`);
  process.exitCode = 2;
}

async function run(options: Parameters<typeof startEngine>[0], lifeline: boolean): Promise<void> {
  const stop = Promise.withResolvers<void>();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.resolve());
  if (lifeline)
    process.stdin
      .once('end', () => stop.resolve())
      .once('error', () => stop.resolve())
      .resume();
  await using engine = await startEngine(options);
  process.stdout.write(`${JSON.stringify({ url: engine.url })}\n`);
  await stop.promise;
  process.stdin.destroy();
}
