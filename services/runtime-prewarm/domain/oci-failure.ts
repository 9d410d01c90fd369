// What the OCI runtime says of a command that it could not start, as exit codes of a shell.

const CANNOT_RUN =
  /chdir to cwd|permission denied|(is|not) a directory|exec format error|argument list too long|too many levels|name too long/i;

/**
 * 127 not found, 126 not executable or no such working directory: the command's own fault. Undefined: the sandbox itself
 * failed.
 */
export function unstartedExitCode(said: string): number | undefined {
  if (CANNOT_RUN.test(said)) return 126;
  return /executable file not found|no such file or directory/.test(said) ? 127 : undefined;
}
