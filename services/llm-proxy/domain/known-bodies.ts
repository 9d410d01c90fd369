// The last bodies of each attempt, for the next ones to be read against: bounded, the longest unused goes first.
import { KNOWN_BODIES_BYTES_MAX, KNOWN_BODIES_PER_ATTEMPT_MAX } from '../../common/limits.ts';
import type { Bytes } from './bytes.ts';
import { type KnownBody, type ReadBody, readBody } from './known-body.ts';

/** Heap that one JSON value takes: an empty object and its place, as many small ones are what could take much of it. */
const VALUE_BYTES = 64;

interface Kept {
  readonly body: KnownBody;
  readonly sizeBytes: number;
}

export class KnownBodies {
  readonly #bytesMax: number;
  /** By attempt, those used last at the end; of each the newest first. */
  readonly #known = new Map<object, readonly Kept[]>();
  #sizeBytes = 0;

  constructor(bytesMax = KNOWN_BODIES_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** What the attempt's next body may begin as. */
  of(attempt: object): readonly Bytes[] {
    return this.#known.get(attempt)?.map(({ body }) => body.bytes) ?? [];
  }

  /** Parse an attempt's next body; nothing of what `came` is held. What it returns must not be changed. Throws SyntaxError. */
  read(attempt: object, came: Bytes, member: string): ReadBody {
    const earlier = this.#known.get(attempt) ?? [];
    return readBody(
      came,
      member,
      earlier.map(({ body }) => body),
    );
  }

  /** Keep it for those to come, as nothing goes on from a body that is refused. `values`: JSON values that it is made of. */
  keep(attempt: object, { body, goesOn }: ReadBody, values: number): void {
    if (body.source === undefined) return;
    const others = (this.#known.get(attempt) ?? []).filter((one) => one.body !== goesOn);
    const kept = { body, sizeBytes: body.bytes.length + values * VALUE_BYTES };
    this.#set(attempt, [kept, ...others].slice(0, KNOWN_BODIES_PER_ATTEMPT_MAX));
  }

  forget(attempt: object): void {
    this.#sizeBytes -= sizeOf(this.#known.get(attempt));
    this.#known.delete(attempt);
  }

  #set(attempt: object, bodies: readonly Kept[]): void {
    this.forget(attempt);
    this.#known.set(attempt, bodies);
    this.#sizeBytes += sizeOf(bodies);
    for (const oldest of this.#known.keys()) {
      if (this.#sizeBytes <= this.#bytesMax) break;
      this.forget(oldest);
    }
  }
}

const sizeOf = (bodies: readonly Kept[] = []): number =>
  bodies.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
