#!/usr/bin/env node
// Plain JavaScript that any Node can parse: hands over to the Node.js that this project pins.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import * as module from 'node:module';
import { Socket } from 'node:net';
import { constants } from 'node:os';
import { join } from 'node:path';
import { isatty } from 'node:tty';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { programOf } from '../tools/built.mjs';

/** Set for a process that was handed over to; descriptor 3 then ends when its parent does, however that ends. */
const HANDED_OVER = 'POLAR_CLI_HANDED_OVER';
/** Between two looks whether npm is still there. */
const NPM_CHECK_MS = 1_000;

// Started to outlive its terminal (`clients/cli/stops.ts` says more).
if (![0, 1, 2].some((stream) => isatty(stream))) process.on('SIGHUP', () => {});
if (process.env[HANDED_OVER] === undefined) endWithNpm();
if (Number.parseInt(process.versions.node, 10) >= 24) {
  if (process.env[HANDED_OVER] !== undefined) endWithParent();
  keepCompiled();
  await import(pathToFileURL(programOf(join(import.meta.dirname, '../clients/cli/main.ts')))).catch(
    (error) => {
      if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
      giveUp(error.message);
    },
  );
} else {
  const node = pinnedNode();
  if (node === undefined) giveUp(`it needs Node.js 24; this is ${process.version}`);
  else handOver(node);
}

/**
 * For the next command, which then starts in half of the time; where nothing can be written, each compiles anew. Set-up makes the
 * cache: below a folder that cannot be made, as in /proc, Node.js would look for one for ever.
 */
function keepCompiled() {
  const cache = process.env['POLAR_CACHE_DIR'] ?? join(import.meta.dirname, '../.cache');
  if (existsSync(cache)) module.enableCompileCache(join(cache, 'compiled'));
}

/** Its packages are not all there. */
function giveUp(why) {
  process.stderr.write(`polar: ${why}. Run: npm ci\n`);
  process.exitCode = 1;
}

function handOver(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    env: { ...process.env, [HANDED_OVER]: '1' },
  });
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  // A terminal signals the whole group, so that the child has it already.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
  child.once('error', ({ message }) => giveUp(message));
  child.once('exit', (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
    child.stdio[3].destroy();
  });
}

function endWithParent() {
  delete process.env[HANDED_OVER];
  const lifeline = new Socket({ fd: 3 });
  lifeline.once('close', () => process.kill(process.pid, 'SIGTERM'));
  lifeline
    .on('error', () => {})
    .resume()
    .unref();
}

/** npm hands signals on to the shell that it runs commands by, which dies of them and tells nobody: who ends npm means this. */
function endWithNpm() {
  const above = [process.ppid, parentOf(process.ppid)];
  const [first, second] = above.map(commandOf);
  const isNpm = (command) => /^npm\b/.test(command);
  const byShell = / -c /.test(first) && isNpm(second);
  if (!isNpm(first) && !byShell) return;
  const check = setInterval(() => {
    if (process.ppid === above[0] && (!byShell || parentOf(above[0]) === above[1])) return;
    clearInterval(check);
    process.kill(process.pid, 'SIGTERM');
  }, NPM_CHECK_MS);
  check.unref();
}

/** 0 where it is gone, or nothing is told of processes. */
function parentOf(pid) {
  return Number(/^PPid:\s+(\d+)$/m.exec(fileOf(pid, 'status'))?.[1] ?? 0);
}

function commandOf(pid) {
  return fileOf(pid, 'cmdline').replaceAll('\0', ' ');
}

function fileOf(pid, name) {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}

function pinnedNode() {
  try {
    return module.createRequire(import.meta.url).resolve('node/bin/node');
  } catch {
    return undefined;
  }
}
