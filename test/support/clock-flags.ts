// Another time of day for a process of its own: timers are as they were.

/** Flags of Node.js with which a service reads as the time of day what is so much later. */
export function clockFlags(aheadMs: number): string[] {
  const script = `const RealDate = Date;
    globalThis.Date = class extends RealDate {
      constructor(...args) { super(...(args.length > 0 ? args : [RealDate.now() + ${aheadMs}])); }
      static now() { return RealDate.now() + ${aheadMs}; }
    };`;
  return ['--import', `data:text/javascript,${encodeURIComponent(script)}`];
}
