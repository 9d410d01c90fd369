// Errors of the system that say nothing of what was asked for.

const CODES = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EIO', 'ESTALE']);

/** This process, or the machine, is short of something, for now as a rule: whether a file is there, or good, is not known. */
export const isShortage = (error: unknown): boolean =>
  CODES.has((error as NodeJS.ErrnoException | null | undefined)?.code ?? '');
