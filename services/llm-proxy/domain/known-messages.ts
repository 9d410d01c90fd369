// Messages of the attempts that name earlier replies instead of sending them: bounded, the longest unused goes first.
import type { JsonObject } from './json.ts';

/** All attempts together; above, the records of the one that was longest unused are read again when it asks. */
const STORED_MESSAGES_BYTES_MAX = 64 * 1024 * 1024;

/** Heap that a message takes beside its text. */
const MESSAGE_BYTES = 512;
/** Heap that a letter may take, in texts and in the objects around them. */
const LETTER_BYTES = 2;

/** The very same object each time, so that what is known of it by identity holds. */
export interface KnownMessage {
  readonly message: JsonObject;
  /** Of its JSON. */
  readonly length: number;
}

interface OfAttempt {
  readonly byDigest: Map<string, KnownMessage>;
  sizeBytes: number;
}

export class KnownMessages {
  readonly #bytesMax: number;
  /** Those used last at the end. */
  readonly #attempts = new Map<object, OfAttempt>();
  #sizeBytes = 0;

  constructor(bytesMax = STORED_MESSAGES_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Whether the attempt is one of those whose messages are kept. */
  has(attempt: object): boolean {
    return this.#attempts.has(attempt);
  }

  get(attempt: object, digest: string): KnownMessage | undefined {
    return this.#attempts.get(attempt)?.byDigest.get(digest);
  }

  /** Keep these too. */
  keep(attempt: object, messages: Iterable<readonly [string, KnownMessage]>): void {
    const kept = this.#attempts.get(attempt) ?? { byDigest: new Map(), sizeBytes: 0 };
    this.forget(attempt);
    for (const [digest, known] of messages) {
      if (kept.byDigest.has(digest)) continue;
      kept.byDigest.set(digest, known);
      kept.sizeBytes += known.length * LETTER_BYTES + MESSAGE_BYTES;
    }
    this.#attempts.set(attempt, kept);
    this.#sizeBytes += kept.sizeBytes;
    for (const oldest of this.#attempts.keys()) {
      if (this.#sizeBytes <= this.#bytesMax) break;
      this.forget(oldest);
    }
  }

  forget(attempt: object): void {
    this.#sizeBytes -= this.#attempts.get(attempt)?.sizeBytes ?? 0;
    this.#attempts.delete(attempt);
  }
}

/** Of a stored body. */
export function knownMessage(body: string): KnownMessage {
  return { message: JSON.parse(body) as JsonObject, length: body.length };
}
