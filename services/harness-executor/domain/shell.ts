// Text on its way into a shell command.

/** One word for a POSIX shell, whatever the text holds. */
export const shellQuote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** A command with `{{instruction}}` (or `{{INSTRUCTION}}`) replaced by the quoted instruction. */
export const fillInstruction = (command: string, instruction: string): string =>
  command.replaceAll(/\{\{(?:instruction|INSTRUCTION)\}\}/g, () => shellQuote(instruction));
