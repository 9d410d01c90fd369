// What requests name instead of sending it: read from the attempt's own records, and kept while the attempt goes on so.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { PolarError } from '../../common/errors.ts';
import { PROXY_BODY_BYTES_MAX } from '../../common/limits.ts';
import type { JsonObject } from '../domain/json.ts';
import { type KnownMessage, KnownMessages, knownMessage } from '../domain/known-messages.ts';
import type { Found, Refers } from '../domain/stored-replies.ts';
import type { Attempt } from './attempt.ts';
import type { RecordLog } from './record-log.ts';

export class StoredMessages {
  readonly #log: RecordLog;
  readonly #known: KnownMessages;

  constructor(log: RecordLog, known = new KnownMessages()) {
    this.#log = log;
    this.#known = known;
  }

  /** Throws BODY_TOO_LARGE where a harness could not send as much, SESSION_CLOSED, NATS_UNAVAILABLE. */
  async find(attempt: Attempt, refers: Refers): Promise<Found<JsonObject>> {
    const { previous, replies } = attempt.stored.find(refers);
    const named = [...(previous ?? []), ...replies.values()];
    const messages = await this.#messages(attempt, new Set(named));
    const messageOf = (digest: string): KnownMessage => messages.get(digest) as KnownMessage;
    requireLength(named.reduce((sum, digest) => sum + messageOf(digest).length, 0));
    return {
      previous: previous?.map((digest) => messageOf(digest).message),
      replies: new Map([...replies].map(([call, digest]) => [call, messageOf(digest).message])),
    };
  }

  /** Take in a record that was written: what goes on from it need not be read again. */
  add(attempt: Attempt, { messageDigests, replyDigest, messageBodies }: Completion): void {
    if (!this.#known.has(attempt)) return;
    const said = [...messageDigests, replyDigest].filter((digest) => messageBodies[digest] !== undefined);
    const fresh = said.map((digest) => [digest, knownMessage(messageBodies[digest] as string)] as const);
    this.#known.keep(attempt, fresh);
  }

  forget(attempt: Attempt): void {
    this.#known.forget(attempt);
  }

  async #messages(attempt: Attempt, wanted: ReadonlySet<string>): Promise<Map<string, KnownMessage>> {
    const found = new Map<string, KnownMessage>();
    for (const digest of wanted) {
      const known = this.#known.get(attempt, digest);
      if (known !== undefined) found.set(digest, known);
    }
    if (found.size < wanted.size) await this.#read(attempt, wanted, found);
    // Of one that has ended meanwhile nobody would forget them.
    attempt.requireOpen();
    this.#known.keep(attempt, found);
    return found;
  }

  async #read(
    attempt: Attempt,
    wanted: ReadonlySet<string>,
    found: Map<string, KnownMessage>,
  ): Promise<void> {
    let length = 0;
    await this.#log.each(attempt.key, ({ messageBodies }) => {
      for (const [digest, body] of Object.entries(messageBodies)) {
        if (!wanted.has(digest) || found.has(digest)) continue;
        length += body.length;
        requireLength(length);
        found.set(digest, knownMessage(body));
      }
    });
    if (found.size < wanted.size) {
      throw new PolarError('RECORDS_MISSING', 'a message of the attempt is in none of its records');
    }
  }
}

function requireLength(length: number): void {
  if (length <= PROXY_BODY_BYTES_MAX) return;
  throw new PolarError('BODY_TOO_LARGE', `what the request names is above ${PROXY_BODY_BYTES_MAX} bytes`);
}
