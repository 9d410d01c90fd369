// Why a prompt does not extend what its conversation was served and sampled before. The words go on the record.

export const DRIFTS = {
  tools_changed: 'the same conversation with other tool definitions',
  settings_changed: 'the same conversation with other settings of the chat template',
  system_changed: 'the same conversation under other instructions',
  history_edited: 'an earlier message is another one than was sent or sampled',
  reasoning_dropped: 'the thinking of an earlier turn is not there any more',
  rewound: 'the conversation goes on from before its first reply',
  resampled: 'the first messages again: a retry, or one of several replies',
  compacted: 'the history is replaced by a shorter one',
  retokenised: 'the same messages, rendered to other ids than were sampled',
  template_not_extending: 'the chat template renders what came before otherwise than it did',
  renderer_differs: 'the renderer does not render prompts as the engine does',
  not_rendered:
    'nothing renders messages for the engine, or the request holds what is no text, or asks what the engine takes in chats alone',
} as const;

export type Drift = keyof typeof DRIFTS | '';

/** What is known of a prompt that does not extend the call with which it shares most. */
export interface Evidence {
  /** Messages of the request. */
  readonly total: number;
  /** System messages at its start. */
  readonly systems: number;
  /** Messages at its start that an earlier conversation has too. */
  readonly shared: number;
  /** Messages of that conversation, its reply included; 0 for none. */
  readonly earlierTotal: number;
  /** That conversation was sent with the same tools. */
  readonly sameTools: boolean;
  /** … and settings of the template. */
  readonly sameSettings: boolean;
  /** Messages behind the first one that differs which stand at the same place in both. */
  readonly inPlace: number;
  /** The first message that differs is an assistant's in the request. */
  readonly turnReplaced: boolean;
  /** … and it is a sampled one without its thinking. */
  readonly withoutThinking: boolean;
  /** An earlier conversation has the same second message. */
  readonly secondKnown: boolean;
  /** The conversation of a recorded call, its reply included, is the beginning of the request. */
  readonly head: HeadEvidence | undefined;
}

export interface HeadEvidence {
  /** The prompt begins with all ids of that call. */
  readonly extended: boolean;
  /** The first id that differs is where a reply with thinking begins. */
  readonly atThinking: boolean;
}

/** Messages that must be gone where a conversation counts as compacted: two turns and what they were answers to. */
const COMPACTED_MIN = 4;

/** Empty: nothing came before, nothing that this goes on from, or all of it is extended. */
export function driftOf(evidence: Evidence): Drift {
  const { total, systems, shared, earlierTotal, head } = evidence;
  if (shared === 0) return evidence.secondKnown ? 'system_changed' : '';
  if (evidence.withoutThinking) return 'reasoning_dropped';
  if (head?.extended === false)
    return ofSame(evidence, head.atThinking ? 'reasoning_dropped' : 'retokenised');
  const edited = evidence.inPlace > 0 || evidence.turnReplaced;
  // A branch or a retry: another end of what it extends.
  if (head?.extended === true && !edited) return '';
  if (shared === total) return ofSame(evidence, 'resampled');
  // The instructions alone do not make two conversations one.
  if (shared <= systems) return '';
  if (evidence.inPlace > 0) return 'history_edited';
  const gone = earlierTotal - shared;
  if (head === undefined && gone >= COMPACTED_MIN && total - shared < gone) return 'compacted';
  return evidence.turnReplaced ? 'history_edited' : 'rewound';
}

/** The messages are the same, so it is what stands around them, else `otherwise`. */
function ofSame({ sameTools, sameSettings }: Evidence, otherwise: Drift): Drift {
  if (!sameTools) return 'tools_changed';
  return sameSettings ? otherwise : 'settings_changed';
}
