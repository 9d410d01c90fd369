// Inside the process of a plug-in: how it is told what to do, and what its author is told of what went wrong.
import process from 'node:process';

/**
 * Hands the first message to `work`; what that gives is sent, and the process ends. It ends with all that the plug-in
 * started, its group, where nobody waits any more. Answers how to send more before.
 */
export function servePlugin(work: (given: unknown) => Promise<unknown>): (message: unknown) => void {
  process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));
  const send = process.send?.bind(process);
  // Modules that speak to a parent process find none: what this one is told is the answer.
  delete process.send;
  process.once('message', (given) => {
    void work(given).then((told) => send?.(told, () => process.exit()));
  });
  return (message) => send?.(message);
}

/** Where in the module: who wrote it sees nothing of what it prints. */
export function lineIn(url: string, error: unknown): string {
  const stack = error instanceof Error ? String(error.stack) : '';
  const [, behind] = stack.split(`${url}:`, 2);
  const [line] = /^\d+/.exec(behind ?? '') ?? [];
  return line === undefined ? '' : ` in line ${line}`;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
