// The standard input of a command that an engine has started, written past the engine.
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';

const { O_NONBLOCK, O_WRONLY } = constants;

/** Undefined where it is no pipe, or the process has ended. */
export function openStdin(pid: number): Socket | undefined {
  try {
    const fd = openSync(`/proc/${pid}/fd/0`, O_WRONLY | O_NONBLOCK);
    // A command that has it closed, or is done, is no fault.
    if (fstatSync(fd).isFIFO())
      return new Socket({ fd, readable: false, writable: true }).on('error', () => {});
    closeSync(fd);
  } catch {
    // It has none any more.
  }
  return undefined;
}
