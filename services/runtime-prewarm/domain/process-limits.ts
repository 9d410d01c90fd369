// Limits of a process as /proc/PID/limits tells them.

/** The hard limit of a line "Max WHAT", `most` where it is above that or there is none. */
export function hardLimitOf(text: string, what: string, most: number): number {
  const hard = Number(new RegExp(`^Max ${what} +\\S+ +(\\d+)`, 'm').exec(text)?.[1] ?? most);
  return Math.min(hard, most);
}
