// Tasks for tests and benchmarks, and waiting for their end through outages.
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { Client } from '@connectrpc/connect';
import { type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type TaskSpec, TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import type { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../services/common/clock.ts';

/** A shell harness that makes `calls` model calls in one conversation, with nothing but sh and curl. */
export function curlTask(
  taskId: string,
  numSamples: number,
  calls = 3,
  more: MessageInitShape<typeof TaskSpecSchema> = {},
): TaskSpec {
  const body = '{\\"model\\":\\"m\\",\\"messages\\":[$messages]}';
  const command = [
    'set -e',
    'messages=\'{"role":"user","content":"count"}\'',
    `for i in $(seq ${calls}); do`,
    `  curl -sS --fail --retry 8 --retry-all-errors --retry-delay 1 -o reply.json "$OPENAI_BASE_URL/chat/completions" \\`,
    `    -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d "${body}"`,
    '  test -s reply.json',
    `  messages="$messages,{\\"role\\":\\"assistant\\",\\"content\\":\\"ok\\"},{\\"role\\":\\"user\\",\\"content\\":\\"next $i\\"}"`,
    'done',
  ].join('\n');
  const base: MessageInitShape<typeof TaskSpecSchema> = {
    taskId,
    instruction: 'Count.',
    numSamples,
    harness: { name: 'shell', modelName: 'm', command: { command } },
    builder: { strategy: 'prefix_merging' },
    evaluator: { strategy: 'session_completed' },
  };
  return create(TaskSpecSchema, Object.assign(base, more));
}

/** One model call in a shell harness. */
export function spoken(text: string): string {
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: text }] });
  const headers = `-H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json'`;
  return `curl -sS --fail -o /dev/null "$OPENAI_BASE_URL/chat/completions" ${headers} -d '${body}'`;
}

/** Poll, through restarts of everything, until all sessions of a task have ended. */
export async function waitForEnd(
  rollout: Client<typeof RolloutService>,
  taskId: string,
  timeoutMs: number,
): Promise<Session[]> {
  const until = performance.now() + timeoutMs;
  let last: Session[] = [];
  while (performance.now() < until) {
    const page = await rollout
      .listSessions({ taskId, pageSize: 1000 }, { timeoutMs: 5_000 })
      .catch(() => undefined);
    last = page?.sessions ?? last;
    if (last.length > 0 && last.every((session) => session.state === SessionState.ENDED)) return last;
    await sleep(200);
  }
  const open = last
    .filter((session) => session.state !== SessionState.ENDED)
    .map(
      (session) =>
        `${session.sessionId} ${SessionState[session.state]} attempt ${session.attempt} ${session.failure?.reason ?? ''}`,
    );
  throw new Error(`after ${timeoutMs} ms these have not ended:\n${open.join('\n')}`);
}
