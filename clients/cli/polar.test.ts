// What commands refuse before they call anybody. `test/integration/cli.test.ts` runs them as their users do.
import process from 'node:process';
import { expect } from 'chai';
import { polar } from './polar.ts';

/** What it says meanwhile on both streams, and its exit code. */
async function told(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const said = { stdout: '', stderr: '' };
  await using stack = new AsyncDisposableStack();
  for (const name of ['stdout', 'stderr'] as const) {
    const { write } = process[name];
    process[name].write = (chunk: unknown): boolean => {
      said[name] += String(chunk);
      return true;
    };
    stack.defer(() => {
      process[name].write = write;
    });
  }
  return { code: await polar(args), ...said };
}

describe('polar', () => {
  const WRONG: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['an unknown flag', ['status', '--fast'], /--fast/],
    ['a flag without its value', ['status', '--rollout-url'], /rollout-url/],
    ['one id for two files', ['submit', 'a', 'b', '--task-id', 'c'], /--task-id is for one FILE/],
    ['one operand too many', ['cancel', 'a', 'b'], /unexpected b/],
    ['both kinds of export', ['export', 's-1', '--calls', '--traces'], /--calls and --traces/],
    ['neither kind of export', ['export', 's-1'], /--calls and --traces/],
    ['an attempt that is no number', ['export', 's-1', '--calls', '--attempt', 'x'], /--attempt/],
    ['an unknown service', ['serve', 'proxy'], /unknown service proxy; there are scheduler/],
    ['--once without a task', ['up', '--once'], /--once needs/],
    [
      'an address without its scheme',
      ['status', '--rollout-url', 'localhost:8080'],
      /like http:\/\/HOST:PORT/,
    ],
    [
      'one that is none',
      ['export', 's', '--calls', '--trajectory-url', 'http://h:p'],
      /--trajectory-url must/,
    ],
    ['a bound for what is not asked for', ['audit', 's', '--tolerance', '1'], /--tolerance is for --rescore/],
    ['a file and the list of files', ['logs', 's', '--files', '--file', 'x'], /one of --files and --file/],
    ['a file as JSON', ['logs', 's', '--file', 'x', '--json'], /--json is not for --file/],
    ['a lease of no time', ['capture', '--lease', '0', 'true'], /--lease must be a number above 0/],
    ['a time without an end', ['capture', '--timeout', '1e20', 'true'], /--timeout must be a number/],
    ['logs of no attempt', ['logs', 's-0', '--attempt', '0'], /--attempt must be a number from 1/],
    ['an export of no attempt', ['export', 's-0', '--calls', '--attempt', ''], /--attempt is empty/],
    ['rewards to standard output', ['regrade', 's', '-o', '-'], /--out must be the name of a file, not -/],
    ['traces to it', ['rebuild', 's', '--traces', '-'], /--traces must be the name of a file/],
    ['a port that is none', ['dashboard', '--port', ' '], /--port must be from 0 to 65535, not " "/],
    [
      'a value that may be a flag',
      ['capture', '--reward', '-1'],
      /^polar: Option '--reward' .* is given as --name=-value; .*\n$/,
    ],
    ['a port that a script has not set', ['dashboard', '--port', ''], /--port is empty/],
    ['a task that a script has not set', ['watch', 'a', ''], /TASK is empty/],
    ['no session', ['status', ''], /TASK-OR-SESSION is empty/],
    [
      'a command to close with, with an empty argument',
      ['capture', '--close', 's', 'true', ''],
      /no command/,
    ],
    ['a time for modules without an end', ['rebuild', 's', '--plugin-timeout', 'Infinity'], /at most 3600/],
    ['a reward that is no number', ['capture', '--reward', 'much', 'true'], /--reward must be a number/],
    [
      'a reward that is too large',
      ['capture', '--reward', '2e6', 'true'],
      /--reward must be .* 1000000, not/,
    ],
    ['a reward without an end', ['capture', '--reward', '1'], /for a COMMAND, or for --close/],
    ['a command to close with', ['capture', '--close', 's', 'true'], /--close runs no command/],
    [
      'a model for a task that has one',
      ['capture', '--task', 't', '--model', 'm'],
      /--model is not for --task/,
    ],
    ['why a command failed', ['capture', '--failed', 'x', 'true'], /--failed is for --close/],
    ['a task that is not there', ['up', '--task', 'not-there.yaml'], /INVALID_TASK: not-there\.yaml/],
    ['a topology that is not there', ['status', '-c', 'not-there.yaml'], /INVALID_CONFIG: not-there\.yaml/],
  ];
  for (const [what, args, message] of WRONG) {
    it(`refuses ${what} with exit code 2 and one message`, async () => {
      const { code, stdout, stderr } = await told(...args);
      expect(stderr).to.match(message);
      expect(stderr).to.match(/^polar: /);
      expect([code, stdout]).to.deep.equal([2, '']);
    });
  }
});
