// What a launcher tells on its status descriptor, in bwrap's words: JSON documents, which may come in pieces.

export interface LaunchStatus {
  /** The first process of the sandbox, as the host numbers it. */
  readonly childPid: number | undefined;
  /** The command has come to run; bwrap does not tell it. */
  readonly started: boolean;
  /** Told by bwrap alone, where the command itself ran; undefined where it could not get that far, or was killed. */
  readonly exitCode: number | undefined;
}

/** Reads the complete documents of a text. What is none is passed over: what runs inside may reach the descriptor (apptainer). */
export function readStatus(text: string): LaunchStatus {
  let status: LaunchStatus = { childPid: undefined, started: false, exitCode: undefined };
  for (const [document] of text.matchAll(/\{[^{}]*\}/g)) {
    const parsed = parsedOrNone(document);
    status = {
      childPid: parsed['child-pid'] ?? status.childPid,
      started: status.started || 'started' in parsed,
      exitCode: parsed['exit-code'] ?? status.exitCode,
    };
  }
  return status;
}

function parsedOrNone(document: string): Record<string, number> {
  try {
    return JSON.parse(document);
  } catch {
    return {};
  }
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
