// The last bodies of each attempt, for the next ones to be read against: bounded, the longest unused goes first.
import { KNOWN_BODIES_BYTES_MAX, KNOWN_BODIES_PER_ATTEMPT_MAX } from '../../common/limits.ts';
import type { Bytes } from './bytes.ts';
import { type KnownBody, readBody } from './known-body.ts';

export class KnownBodies {
  readonly #bytesMax: number;
  /** By attempt, those used last at the end; of each the newest first. */
  readonly #known = new Map<object, readonly KnownBody[]>();
  #sizeBytes = 0;

  constructor(bytesMax = KNOWN_BODIES_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Parse an attempt's next body; nothing of what `came` is held. What it returns must not be changed. Throws SyntaxError. */
  read(attempt: object, came: Bytes, member: string): KnownBody {
    const earlier = this.#known.get(attempt) ?? [];
    const { body, goesOn } = readBody(came, member, earlier);
    if (body.source !== undefined) {
      const others = earlier.filter((one) => one !== goesOn);
      this.#set(attempt, [body, ...others].slice(0, KNOWN_BODIES_PER_ATTEMPT_MAX));
    }
    return body;
  }

  forget(attempt: object): void {
    this.#sizeBytes -= sizeOf(this.#known.get(attempt));
    this.#known.delete(attempt);
  }

  #set(attempt: object, bodies: readonly KnownBody[]): void {
    this.forget(attempt);
    this.#known.set(attempt, bodies);
    this.#sizeBytes += sizeOf(bodies);
    for (const oldest of this.#known.keys()) {
      if (this.#sizeBytes <= this.#bytesMax) break;
      this.forget(oldest);
    }
  }
}

const sizeOf = (bodies: readonly KnownBody[] = []): number =>
  bodies.reduce((sum, { bytes }) => sum + bytes.length, 0);
