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
  /** By number of messages and reply. */
  readonly #byReply = new Map<string, Call[]>();
  readonly #byMessages = new Map<MessageNode, Call[]>();

  add(call: Call): void {
    addTo(this.#byMessages, call.messages, call);
    if (call.reply !== null) addTo(this.#byReply, `${call.messages.depth} ${call.reply}`, call);
  }

  /** Looked for from the call's last message backwards: a call that appends is found at once. */
  before(call: Call): readonly Call[] {
    for (
      let { parent, digest } = call.messages;
      parent !== undefined && parent.depth > 0;
      { parent, digest } = parent
    ) {
      const replied = this.#byReply.get(`${parent.depth} ${digest}`) ?? NONE;
      // An equal reply alone ("ok") does not make two conversations one.
      const found = those(replied, (earlier) => equalInCall(call, earlier) > 1);
      const whole = those(this.#byMessages.get(parent) ?? NONE, ({ reply }) => reply !== digest);
      // What went on from here with this reply is in both.
      if (found.length > 0 || whole.length > 0) return whole.length > 0 ? [...found, ...whole] : found;
    }
    return NONE;
  }
}

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
