// Unpacking a squashfs, and whether all of it is there then.

/**
 * What cannot be had in a sandbox, and is missed by none: devices are nobody's to make, and owners may be none of its users.
 * Everything else that is told is missing, as where a disk is full.
 */
const MISSED_BY_NONE = [
  'create_inode: failed to create (character|block) device .*, because Operation not permitted',
  'set_attributes: failed to change uid and gids on .*, because Invalid argument',
  '',
].map((line) => `^${line}$`);

const NO_PROGRAM = '127';

/** For `sh -c`, with more options, folder and file as its arguments: it says what else is missing, and how it ended. */
export const UNSQUASH = [
  '{ unsquashfs -no-progress -no-xattrs "$@" 2>&1 > /dev/null; echo "exit $?"; }',
  `grep -vE '${MISSED_BY_NONE.join('|')}'`,
].join(' | ');

/** Why it is not whole, by what was said; undefined: it is. */
export function incompleteness(said: string): string | undefined {
  const [, why = said, code] = /^(.*?)exit (\d+)\n$/s.exec(said) ?? [];
  if (code === NO_PROGRAM) return 'there is no unsquashfs: install squashfs-tools';
  const isWhole = why === '' && (code === '0' || code === '2');
  return isWhole
    ? undefined
    : why.trim() || `unsquashfs ${code === undefined ? 'was ended' : `ended with ${code}`}`;
}
