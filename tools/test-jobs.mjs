// Runs the jobs of a test run, several at a time; the output of each is shown as one piece when it has ended.
//
// A job has `name`, `command` and `args`. `read` gives its counts, with the `titles` of failed tests and a `report` of
// them; a job without it counts as one test. `again` makes, of a result with such titles, the job that is run once more
// when all jobs have ended, and `others` counts what that job leaves out.
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** A job that takes longer is killed and has failed. */
const JOB_MS = 900_000;
/** What a job that has ended gives those that hold its output, before they count as left running. */
const OUTPUT_CLOSE_MS = 5_000;
const OUTPUT_TAIL_CHARS = 4_000;
/** Where tests of more jobs fail, it is not chance, and none is tried again. */
const AGAIN_MAX = 6;

/**
 * mocha over some files; its result passes through a file in `folder`. Files with failed tests are run once more.
 * @param {string} name
 * @param {string[]} files
 * @param {{ folder: string, args?: string[] }} options
 */
export function mochaJob(name, files, { folder, args: more = [] }) {
  const output = join(folder, `${name.replaceAll(/\W+/g, '-')}.json`);
  const reporter = ['--reporter', join(import.meta.dirname, 'mocha-reporter.cjs')];
  const args = [...reporter, '--reporter-option', `output=${output}`, ...more, ...files];
  const read = () => {
    const { passes, failures, pending, failed, report, left, ...places } = JSON.parse(
      readFileSync(output, 'utf8'),
    );
    rmSync(output);
    const result = { passed: passes, failed: failures, skipped: pending, titles: failed, report, ...places };
    if (left === undefined) return result;
    return { ...result, failed: failures + 1, titles: [], report: `${report}it does not end: ${left}\n` };
  };
  const again = (first) => mochaJob(name, first.files, { folder, args: more });
  return { name, command: 'mocha', args, read, again };
}

/** What came of each job: `name`, counts, `report`, and `secondTry`: titles of tests that passed only then. */
export async function runJobs(jobs, { slots, say, ...options }) {
  const waiting = [...jobs];
  const tries = [];
  const work = async () => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      tries.push({ job, first: await tryJob(job, say, options) });
    }
  };
  await Promise.all(Array.from({ length: slots }, work));
  const results = [];
  const again = tries.filter(mayBeChance).length <= AGAIN_MAX ? mayBeChance : () => false;
  for (const { job, first } of tries) {
    const result = again({ job, first }) ? await secondTry(job, first, say, options) : first;
    results.push({ name: job.name, ...result });
  }
  return results;
}

const mayBeChance = ({ job, first }) => job.again !== undefined && first.titles.length > 0;

/** After all others and alone: what failed because the machine was busy would fail so again beside them. */
async function secondTry(job, first, say, options) {
  say(`\n== once more: ${job.name}, as tests of it failed`);
  const second = await tryJob(job.again(first), say, options);
  const titles = first.titles.filter((title) => !second.titles.includes(title));
  const passed = first.others.passed + second.passed;
  const skipped = first.others.skipped + second.skipped;
  return { ...second, passed, skipped, secondTry: titles, report: `${first.report}${second.report}` };
}

async function tryJob({ name, command, args, read }, say, options) {
  const began = performance.now();
  const { problem, output } = await ended(
    spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] }),
  );
  say(`\n== ${name}: ${((performance.now() - began) / 1000).toFixed(1)} s\n${output.trimEnd()}`);
  const result = { failed: 0, skipped: 0, titles: [], report: '', secondTry: [], ...counts(read, problem) };
  if (result.failed === 0 ? problem === undefined : result.report !== '') return result;
  const why = problem ?? 'it gave no result';
  return {
    ...result,
    failed: Math.max(1, result.failed),
    report: `${why}\n${output.slice(-OUTPUT_TAIL_CHARS)}\n`,
  };
}

function counts(read, problem) {
  if (read === undefined) return { passed: problem === undefined ? 1 : 0 };
  try {
    return read();
  } catch {
    return { passed: 0, failed: 1 };
  }
}

/** Its whole output, and the problem that it ended with. */
function ended(child) {
  let output = '';
  const pipes = [child.stdout, child.stderr];
  for (const pipe of pipes) pipe.setEncoding('utf8').on('data', (text) => (output += text));
  return new Promise((resolve) => {
    const limit = setTimeout(() => child.kill('SIGKILL'), JOB_MS);
    const end = (problem) => {
      clearTimeout(limit);
      resolve({ problem, output });
    };
    child.once('error', (error) => end(error.message));
    child.once('close', (code, signal) => end(code === 0 ? undefined : `it ended with ${code ?? signal}`));
    child.once('exit', () =>
      setTimeout(() => {
        for (const pipe of pipes) pipe.destroy();
        end('it left a process running');
      }, OUTPUT_CLOSE_MS).unref(),
    );
  });
}
