// Where a call's prompt differs from what its conversation was served and sampled before.
import { create } from '@bufbuild/protobuf';
import { type Drift, DriftKind, DriftSchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { byStart, type Call } from './call.ts';
import { commonDepth } from './token-tree.ts';

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
    const equal = equalInPlace(call, earlier);
    if (closest === undefined || equal >= closest.equal) closest = { earlier, equal };
  }
  if (closest === undefined) return undefined;
  const { earlier, equal } = closest;
  const firstDifference = commonDepth(call.prompt, earlier.end);
  if (firstDifference === call.prompt.depth) return undefined;
  // Same messages: all that were sent before, and the reply to them.
  const same = equal === earlier.messages.length + 1;
  const kind = same ? DriftKind.RETOKENISED : DriftKind.REWRITTEN;
  return create(DriftSchema, { callId: call.callId, kind, firstDifference });
}

/** How many messages of the earlier call, its reply included, stand in the call at the same place. */
function equalInPlace(call: Call, earlier: Call): number {
  let equal = earlier.reply !== null && call.messages[earlier.messages.length] === earlier.reply ? 1 : 0;
  for (const [i, message] of earlier.messages.entries()) if (call.messages[i] === message) equal++;
  return equal;
}

/**
 * The calls so far, by the messages that they had. A call goes on from the earlier ones with the most messages, but
 * fewer than its own, whose reply stands behind the place of those messages, or of which it has all messages.
 */
class History {
  /** Number of messages, then reply. */
  readonly #byReply = new Map<number, Map<string, Call[]>>();
  readonly #prefixes = new MessageNode();

  add(call: Call): void {
    let node = this.#prefixes;
    for (const message of call.messages) node = node.enter(message);
    node.calls.push(call);
    if (call.reply === null) return;
    const place = getOrAdd(this.#byReply, call.messages.length, () => new Map<string, Call[]>());
    getOrAdd(place, call.reply, () => []).push(call);
  }

  before(call: Call): Call[] {
    const prefix = this.#longestPrefix(call);
    for (let place = call.messages.length - 1; place > 0; place--) {
      const replied = this.#byReply.get(place)?.get(call.messages[place] as string) ?? [];
      // An equal reply alone ("ok") does not make two conversations one.
      const found = replied.filter((earlier) => equalInPlace(call, earlier) > 1);
      if (place === prefix.place) return [...new Set([...found, ...prefix.calls])];
      if (found.length > 0) return found;
    }
    return [];
  }

  #longestPrefix(call: Call): { readonly place: number; readonly calls: readonly Call[] } {
    let node: MessageNode | undefined = this.#prefixes;
    let longest: { place: number; calls: readonly Call[] } = { place: 0, calls: [] };
    for (let place = 1; place < call.messages.length; place++) {
      node = node.children.get(call.messages[place - 1] as string);
      if (node === undefined) break;
      if (node.calls.length > 0) longest = { place, calls: node.calls };
    }
    return longest;
  }
}

class MessageNode {
  readonly children = new Map<string, MessageNode>();
  readonly calls: Call[] = [];

  enter(message: string): MessageNode {
    return getOrAdd(this.children, message, () => new MessageNode());
  }
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}
