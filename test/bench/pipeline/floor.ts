// The floor of throughput: the command of the sessions in the same sandbox, started by a bare loop, straight at the engine.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { nodeFlagsOf } from '../../../clients/cli/services.ts';
import type { LoopAnswer, LoopOptions } from './bare-loop.ts';
import { type Cpu, eachMs, type Meter } from './meter.ts';

export interface Throughput {
  readonly perSecond: number;
  /** A session; the engine that answers is not among it. */
  readonly cpu: Cpu;
}

export interface Floor extends AsyncDisposable {
  measure(sessions: number): Promise<Throughput>;
}

/** With the flags of the service that manages sandboxes in a mesh. */
export async function openFloor(options: LoopOptions, meter: Meter): Promise<Floor> {
  const child = fork(join(import.meta.dirname, 'bare-loop.ts'), [JSON.stringify(options)], {
    execArgv: [...nodeFlagsOf('runtime-prewarm')],
  });
  const { folder } = (await answerOf(child)) as { folder: string };
  const used = (): Cpu => meter([child.pid ?? 0], folder);
  return {
    async measure(sessions) {
      const before = used();
      child.send(sessions);
      const { seconds } = (await answerOf(child)) as { seconds: number };
      return { perSecond: sessions / seconds, cpu: eachMs(before, used(), sessions) };
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

async function answerOf(child: ChildProcess): Promise<LoopAnswer> {
  const ended = new AbortController();
  const exited = once(child, 'exit', ended).then(([code, signal]) => {
    throw new Error(`the floor's loop ended with ${code ?? signal}`);
  });
  const answered = once(child, 'message', ended).then(([answer]) => answer as LoopAnswer);
  try {
    return await Promise.race([answered, exited]);
  } finally {
    exited.catch(() => {});
    answered.catch(() => {});
    ended.abort();
  }
}
