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

/** Flags of Node.js with which a process that was stopped for 2 s finds its steady clock as one on a machine that slept does. */
export function sleepingFlags(): string[] {
  const script = `const steady = performance.now.bind(performance);
    let [seen, slept] = [steady(), 0];
    const now = () => {
      const at = steady();
      if (at - seen > 2_000) slept += at - seen;
      seen = at;
      return at - slept;
    };
    Object.defineProperty(performance, 'now', { value: now });
    setInterval(now, 50).unref();`;
  return ['--import', `data:text/javascript,${encodeURIComponent(script)}`];
}
