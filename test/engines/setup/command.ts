// One command of the set-up: what it does is said, that it still does it is said every 10 s, its output only when it
// fails.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';

const PROGRESS_MS = 10_000;
const OUTPUT_CHARS_MAX = 1 << 16;
const OUTPUT_LINES_MAX = 15;
/** The longest step, a build, takes 8 minutes on two cores. */
const COMMAND_MS = 45 * 60_000;

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export const say = (text: string): void => void process.stdout.write(`engines: ${text}\n`);

/** Run `argv` at a low priority. Returns its output; throws what it said last where it fails. */
export async function run(
  what: string,
  argv: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const started = performance.now();
  const seconds = (): string => `${((performance.now() - started) / 1_000).toFixed(0)} s`;
  say(`${what} …`);
  const child = spawn('nice', ['-n', '10', ...argv], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: COMMAND_MS,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-OUTPUT_CHARS_MAX);
    });
  }
  const tick = setInterval(() => say(`${what}: ${seconds()} …`), PROGRESS_MS);
  const [code, signal] = await once(child, 'close').finally(() => clearInterval(tick));
  if (code !== 0) {
    const said = output.trim().split('\n').slice(-OUTPUT_LINES_MAX).join('\n');
    throw new Error(`${what} failed: ${argv[0]} ended with ${code ?? signal}\n${said}`);
  }
  say(`${what}: done in ${seconds()}`);
  return output;
}
