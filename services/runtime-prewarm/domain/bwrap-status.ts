// What bwrap tells on its status descriptor: JSON documents, which may come in pieces.

export interface BwrapStatus {
  /** Pid 1 of the sandbox, as the host numbers it. */
  readonly childPid: number | undefined;
  /** Told only where the command itself ran; undefined where bwrap could not get that far, or was killed. */
  readonly exitCode: number | undefined;
}

/** Reads the complete documents of a text. */
export function readStatus(text: string): BwrapStatus {
  let status: BwrapStatus = { childPid: undefined, exitCode: undefined };
  for (const [document] of text.matchAll(/\{[^{}]*\}/g)) {
    const parsed: Record<string, number> = JSON.parse(document);
    status = {
      childPid: parsed['child-pid'] ?? status.childPid,
      exitCode: parsed['exit-code'] ?? status.exitCode,
    };
  }
  return status;
}

/**
 * The exit code of a command that bwrap could not start through no fault of the sandbox: 127 not found,
 * 126 not executable or no such working directory. Undefined: the sandbox itself failed.
 */
export function unstartedExitCode(stderr: string): number | undefined {
  const last = stderr.trimEnd().split('\n').at(-1) ?? '';
  if (!last.startsWith('bwrap: ')) return undefined;
  if (/^bwrap: execvp .*: No such file or directory$/.test(last)) return 127;
  if (/^bwrap: execvp |^bwrap: Can't chdir to /.test(last)) return 126;
  return undefined;
}
