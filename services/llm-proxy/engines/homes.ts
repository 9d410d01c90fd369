// Which engine each session was at last.
import { STICKY_SESSIONS_MAX } from '../../common/limits.ts';
import type { Member } from './member.ts';

export class Homes {
  /** The session that called longest ago first. */
  readonly #members = new Map<string, Member>();

  of(session: string): Member | undefined {
    return this.#members.get(session);
  }

  set(session: string, member: Member): void {
    this.forget(session);
    this.#members.set(session, member);
    member.sessions++;
    if (this.#members.size <= STICKY_SESSIONS_MAX) return;
    const [oldest] = this.#members.keys();
    if (oldest !== undefined) this.forget(oldest);
  }

  forget(session: string): void {
    const member = this.#members.get(session);
    if (member === undefined) return;
    member.sessions--;
    this.#members.delete(session);
  }
}
