// Facts on their way to the scheduler, and whom they are about.
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  type AttemptRef,
  type Fact,
  FactSchema,
  WorkSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../errors.ts';
import { fromStored } from '../stored.ts';
import type { BlobStore } from './blobs.ts';
import type { Bus } from './bus.ts';
import { publish } from './publish.ts';
import { type FactKind, subjects } from './subjects.ts';

export interface FactOptions {
  readonly ref: AttemptRef;
  readonly kind: NonNullable<MessageInitShape<typeof FactSchema>['kind']>;
  /** Wall time of the stage. */
  readonly durationMs: number;
  /** What commands of the stage were not let connect to. */
  readonly denied?: { readonly count: number; readonly targets: readonly string[] } | undefined;
  readonly signal?: AbortSignal;
}

/** The attempt that work is for; undefined where the message names none, or cannot be read: nobody waits for its fact. */
export function attemptOf(work: Uint8Array): AttemptRef | undefined {
  try {
    return fromStored(WorkSchema, work).ref;
  } catch {
    return undefined;
  }
}

/** Publish a fact; stored when it returns, once for each attempt and kind (`failed`: and stage). */
export async function publishFact(bus: Bus, blobs: BlobStore, options: FactOptions): Promise<void> {
  const { ref, kind, durationMs, denied, signal } = options;
  const fact = create(FactSchema, {
    ...{ ref, durationMs: BigInt(Math.round(durationMs)), kind },
    ...(denied && denied.count > 0 && { denied: { count: denied.count, targets: [...denied.targets] } }),
  });
  const name = kindOf(fact);
  const msgId = `${ref.sessionId}:${ref.attempt}:${name.id}`;
  await publish(bus, blobs, subjects.fact(name.kind, ref.nodeId), toBinary(FactSchema, fact), {
    msgId,
    ...(signal && { signal }),
  });
}

function kindOf({ kind }: Fact): { kind: FactKind; id: string } {
  if (kind.case === undefined) throw new PolarError('INTERNAL', 'a fact has no kind');
  if (kind.case !== 'failed') return { kind: kind.case, id: kind.case };
  return { kind: kind.case, id: `failed-${kind.value.stage}` };
}
