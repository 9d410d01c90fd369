// Where a call's prompt differs from what its conversation was served and sampled before.
import { create } from '@bufbuild/protobuf';
import { type Drift, DriftKind, DriftSchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { byStart, type Call } from './call.ts';
import { equalInPlace, type MessageNode } from './message-tree.ts';
import { commonDepth } from './token-tree.ts';

const NONE: readonly Call[] = [];

/** One entry for each call that does not append to its conversation, by start. */
export function driftsOf(calls: readonly Call[]): Drift[] {
  const history = new History();
  const drifts: Drift[] = [];
  for (const call of calls.toSorted(byStart)) {
    if (call.prompt.depth === 0) continue;
    const drift = driftOf(call, history.before(call));
    if (drift !== undefined) drifts.push(drift);
    history.add(call);
  }
  return drifts;
}

function driftOf(call: Call, before: readonly Call[]): Drift | undefined {
  let closest: { readonly earlier: Call; readonly equal: number } | undefined;
  for (const earlier of before) {
    if (commonDepth(call.prompt, earlier.end) === earlier.end.depth) return undefined;
    const equal = equalInCall(call, earlier);
    if (closest === undefined || equal >= closest.equal) closest = { earlier, equal };
  }
  if (closest === undefined) return undefined;
  const { earlier, equal } = closest;
  const firstDifference = commonDepth(call.prompt, earlier.end);
  if (firstDifference === call.prompt.depth) return undefined;
  // Same messages: all that were sent before, and the reply to them.
  const same = equal === earlier.messages.depth + 1;
  const kind = same ? DriftKind.RETOKENISED : DriftKind.REWRITTEN;
  return create(DriftSchema, { callId: call.callId, kind, firstDifference });
}

/** How many messages of the earlier call, its reply included, stand in the call at the same place. */
function equalInCall(call: Call, { messages, reply }: Call): number {
  const behind = call.messages.ancestor(messages.depth + 1);
  const replied = behind.depth > messages.depth && behind.digest === reply;
  return equalInPlace(call.messages, messages) + (replied ? 1 : 0);
}

/**
 * The calls so far, by the messages that they had. A call goes on from the earlier ones with the most messages, but
 * fewer than its own, whose reply stands behind the place of those messages, or of which it has all messages.
 */
class History {
  /** By reply, and by number of messages where an equal reply came after another number of them: few do. */
  readonly #byReply = new Map<string, Call[] | Map<number, Call[]>>();
  readonly #byMessages = new Map<MessageNode, Call[]>();

  add(call: Call): void {
    addTo(this.#byMessages, call.messages, call);
    if (call.reply !== null) this.#addReply(call, call.reply);
  }

  #addReply(call: Call, reply: string): void {
    const { depth } = call.messages;
    const known = this.#byReply.get(reply);
    if (known === undefined) this.#byReply.set(reply, [call]);
    else if (known instanceof Map) addTo(known, depth, call);
    else if (depthOf(known) === depth) known.push(call);
    else this.#byReply.set(reply, new Map([[depthOf(known), known]]).set(depth, [call]));
  }

  #repliedTo(depth: number, reply: string): readonly Call[] {
    const known = this.#byReply.get(reply);
    if (known instanceof Map) return known.get(depth) ?? NONE;
    return known !== undefined && depthOf(known) === depth ? known : NONE;
  }

  /** Looked for from the call's last message backwards: a call that appends is found at once. */
  before(call: Call): readonly Call[] {
    for (let at = call.messages; at.parent !== undefined && at.parent.depth > 0; at = at.parent) {
      const replied = this.#repliedTo(at.parent.depth, at.digest);
      const asked = this.#byMessages.get(at.parent) ?? NONE;
      if (replied.length === 0 && asked.length === 0) continue;
      const found = goneOn(call, at.digest, replied, asked);
      if (found.length > 0) return found;
    }
    return NONE;
  }
}

/** Of the calls with this reply, and of those with these messages, the ones that the call goes on from. */
function goneOn(
  call: Call,
  digest: string,
  replied: readonly Call[],
  asked: readonly Call[],
): readonly Call[] {
  // An equal reply alone ("ok") does not make two conversations one.
  const found = those(replied, (earlier) => equalInCall(call, earlier) > 1);
  // What went on from here with this reply is in both.
  const whole = those(asked, ({ reply }) => reply !== digest);
  return whole.length > 0 ? [...found, ...whole] : found;
}

/** Messages of calls that all have as many. */
const depthOf = (calls: readonly Call[]): number => calls[0]?.messages.depth ?? 0;

/** Nearly always all or none: then nothing is copied. */
function those(calls: readonly Call[], are: (call: Call) => boolean): readonly Call[] {
  if (!calls.some(are)) return NONE;
  return calls.every(are) ? calls : calls.filter(are);
}

function addTo<K>(lists: Map<K, Call[]>, key: K, call: Call): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [call]);
  else list.push(call);
}
