// Why a prompt does not extend what its conversation was served and sampled before. The words go on the record.

export const DRIFTS = {
  tools_changed: 'the same conversation with other tool definitions',
  settings_changed: 'the same conversation with other settings of the chat template',
  system_changed: 'the same conversation under other instructions',
  history_edited: 'an earlier message is another one than was sent or sampled',
  reasoning_dropped: 'the thinking of an earlier turn is not there any more',
  rewound: 'the conversation goes on from an earlier point',
  resampled: 'the same messages again: a retry, or one of several replies',
  compacted: 'the history is replaced by a shorter one',
  retokenised: 'the same messages, rendered to other ids than were sampled',
  template_not_extending: 'the chat template renders what came before otherwise than it did',
  renderer_differs: 'the renderer does not render prompts as the engine does',
  not_rendered: 'nothing renders messages for the engine, or the request holds what is no text',
} as const;

export type Drift = keyof typeof DRIFTS | '';

/** What is known when a prompt does not extend its conversation. */
export interface Evidence {
  /** Messages of the request. */
  readonly total: number;
  /** System messages at its start. */
  readonly systems: number;
  /** Messages at its start that an earlier conversation has too. */
  readonly shared: number;
  /** Messages of that conversation, its reply included; 0 for none. */
  readonly earlierTotal: number;
  /** Messages behind the shared ones that stand at the same place in both. */
  readonly inPlace: number;
  /** An earlier conversation has the same second message. */
  readonly secondKnown: boolean;
  /** The first message that differs is a sampled one without its thinking. */
  readonly withoutThinking: boolean;
  /** A recorded call's conversation is the beginning of the request, and … */
  readonly head: HeadEvidence | undefined;
}

export interface HeadEvidence {
  readonly sameTools: boolean;
  readonly sameSettings: boolean;
  /** The first id that differs is where a reply with thinking begins. */
  readonly atThinking: boolean;
}

/** Empty: nothing came before, or nothing that this goes on from. */
export function driftOf(evidence: Evidence): Drift {
  const { total, systems, shared, earlierTotal, inPlace } = evidence;
  if (shared === 0) return evidence.secondKnown ? 'system_changed' : '';
  if (evidence.withoutThinking) return 'reasoning_dropped';
  if (shared === total) return earlierTotal > total + 1 ? 'rewound' : ofSame(evidence, 'resampled');
  if (evidence.head !== undefined && shared === earlierTotal) return ofSame(evidence, 'retokenised');
  // The instructions alone do not make two conversations one.
  if (shared <= systems) return '';
  if (inPlace > 0) return 'history_edited';
  if (shared === earlierTotal) return ofSame(evidence, 'retokenised');
  if (total < earlierTotal) return total - shared > 1 ? 'compacted' : 'rewound';
  return 'history_edited';
}

/** The messages are the same, so it is what stands around them, else `otherwise`. */
function ofSame({ head }: Evidence, otherwise: Drift): Drift {
  if (head === undefined) return otherwise;
  if (!head.sameTools) return 'tools_changed';
  if (!head.sameSettings) return 'settings_changed';
  return head.atThinking ? 'reasoning_dropped' : otherwise;
}
