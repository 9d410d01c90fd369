// Which engines a pool has: those of the topology, or the workers that a router tells; and which of them are back.
import { abortable, withTimeout } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { ENGINE_LOOK_MS, ENGINE_PROBE_MS, ENGINES_FOUND_MAX } from '../../common/limits.ts';
import { Member } from './member.ts';
import type { PoolSpec } from './spec.ts';
import { Workers } from './workers.ts';

export class Roster implements Disposable {
  readonly #spec: PoolSpec;
  readonly #onChange: () => void;
  readonly #members = new Map<string, Member>();
  /** The same: each call asks for them. */
  #list: readonly Member[] = [];
  /** No longer in the router's list, with calls in flight or drained: should they come back, it is as what they were. */
  readonly #gone = new Set<Member>();
  readonly #workers: Workers | undefined;
  readonly #closed = new AbortController();
  readonly #timer: NodeJS.Timeout | undefined;
  #found: Promise<void> | undefined;

  /** `onChange` hears when there may be more room for calls. */
  constructor(spec: PoolSpec, onChange: () => void) {
    this.#spec = spec;
    this.#onChange = onChange;
    const [url = ''] = spec.urls;
    if (spec.scheduler === 'sglang_router') this.#workers = new Workers(url, spec);
    else for (const one of spec.urls) this.#members.set(one, new Member(one, spec));
    this.#list = [...this.#members.values()];
    // One engine alone is asked whether it failed or not.
    if (this.#workers === undefined && spec.urls.length === 1) return;
    this.#timer = setInterval(() => void this.#look(), ENGINE_LOOK_MS).unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#closed.abort(new PolarError('SHUTTING_DOWN', 'the proxy is stopping; call again'));
    this.#workers?.[Symbol.dispose]();
    for (const member of [...this.#members.values(), ...this.#gone]) member[Symbol.dispose]();
  }

  get members(): readonly Member[] {
    return this.#list;
  }

  /** Those at this address, also such as have left the router's list. */
  at(name: string): readonly Member[] {
    return [...this.#list, ...this.#gone].filter(({ engine }) => engine.name === name);
  }

  /** All engines that there are now. Throws ENGINE_UNAVAILABLE where a router does not tell them. */
  async found(signal: AbortSignal): Promise<readonly Member[]> {
    if (this.#workers !== undefined) {
      this.#found ??= this.#discover(this.#workers);
      await abortable(this.#found, signal);
    }
    return this.members;
  }

  /** A call has left its place, or the engine is taken back into use. */
  left(member: Member): void {
    if (isIdle(member) && this.#gone.delete(member)) member[Symbol.dispose]();
  }

  /** Where there is none. */
  noEngine(): PolarError {
    // Harnesses read it: without credentials.
    const names = this.#spec.urls.map((url) => new URL(url).origin);
    const message = `there is no engine at ${names.join(', ')}: the router knows no workers`;
    return new PolarError('ENGINE_UNAVAILABLE', message, { retryAfterMs: ENGINE_LOOK_MS });
  }

  async #discover(workers: Workers): Promise<void> {
    try {
      this.#keep(await workers.list(this.#limit()));
    } catch (error) {
      this.#found = undefined;
      throw error instanceof PolarError ? error : this.noEngine();
    }
  }

  /** Engines that are gone from the list take no further calls; those in flight end. */
  #keep(urls: readonly string[]): void {
    for (const url of urls) {
      if (!this.#members.has(url)) this.#members.set(url, this.#back(url) ?? new Member(url, this.#spec));
    }
    for (const [url, member] of this.#members) {
      if (urls.includes(url)) continue;
      this.#members.delete(url);
      this.#gone.add(member);
      this.left(member);
    }
    this.#forgetOldest();
    this.#list = [...this.#members.values()];
    this.#onChange();
  }

  #back(url: string): Member | undefined {
    const member = [...this.#gone].find((one) => one.url === url);
    if (member !== undefined) this.#gone.delete(member);
    return member;
  }

  /** Of those that are drained, and may never come back. */
  #forgetOldest(): void {
    for (const member of this.#gone) {
      if (this.#gone.size <= ENGINES_FOUND_MAX) return;
      if (member.load === 0 && this.#gone.delete(member)) member[Symbol.dispose]();
    }
  }

  /** Ask engines whether they are there, and the router who is. */
  async #look(): Promise<void> {
    const limit = this.#limit();
    const down = this.members.filter(({ up }) => !up);
    // What comes of it counts as an answer or a failure: so one that hangs is found, and one that is back.
    const probes = this.members.map((member) => this.#probe(member));
    // A router that does not answer leaves the engines as they were.
    const listed = this.#workers?.list(limit).then((urls) => this.#keep(urls));
    await Promise.all([...probes, listed?.catch(() => {})]);
    if (down.some(({ up }) => up)) this.#onChange();
  }

  /** Calls at an engine that has fallen silent would wait for all of their time, where another one could answer them. */
  async #probe(member: Member): Promise<void> {
    const { silent } = await member.engine.probe(this.#closed.signal);
    const another = (): boolean => this.members.some(({ up, draining }) => up && !draining);
    if (silent && !member.up && another()) member.engine.giveUpSilent();
  }

  /** For what it asks by itself. */
  #limit(): AbortSignal {
    return withTimeout(ENGINE_PROBE_MS, this.#closed.signal);
  }
}

const isIdle = ({ load, draining }: Member): boolean => load === 0 && !draining;
