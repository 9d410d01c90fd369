// Commands of tests whose processes are looked for on the whole machine, where other tests, and other runs of this one, are.

let count = 0;

/** A `sleep` with digits of its own: nothing else on this machine has it in its command line. */
export function sleepMark(seconds = 600): string {
  count += 1;
  return `sleep ${seconds}.${process.pid.toString().padStart(8, '0')}${count.toString().padStart(4, '0')}`;
}
