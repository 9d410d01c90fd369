// A real engine and the proxies in front of it, one for each mode, each a process of its own.
import { TestProxy } from '../support/llm-proxy.ts';
import { figuresOf } from './figures.ts';
import type { RealEngine } from './kinds/engine.ts';
import { type EngineServer, startEngine } from './server.ts';

const START_MS = 15 * 60_000;

/** Who renders: the engine, from messages or, in token mode, beside the call; or the proxy itself. */
export type Mode = 'text' | 'token' | 'token, local';

export interface Site {
  readonly engine: RealEngine;
  /** Of the engine. */
  readonly url: string;
  readonly mode: Mode;
  readonly proxy: TestProxy;
}

export const modesOf = ({ tokenizer }: RealEngine): readonly Mode[] =>
  tokenizer === undefined ? ['text', 'token'] : ['text', 'token', 'token, local'];

/**
 * Started before the first test of the suite that calls this, ended after its last; with what makes the engine parse its replies,
 * where that is wanted.
 */
export function useSite(
  engine: RealEngine,
  parsers: readonly string[] = [],
  modes = modesOf(engine),
): (mode: Mode) => Site {
  const stack = new AsyncDisposableStack();
  const sites = new Map<Mode, Site>();
  before(async () => {
    const { url } = stack.use(await started(engine, parsers));
    for (const mode of modes) {
      const inference = await inferenceOf(engine, mode);
      const proxy = stack.use(await TestProxy.prepare({ engineUrl: url, kind: engine.kind, inference }));
      await proxy.spawn();
      sites.set(mode, { engine, url, mode, proxy });
    }
  }).timeout(START_MS);
  after(() => stack.disposeAsync());
  return (mode) => {
    const site = sites.get(mode);
    if (site === undefined) throw new Error(`${engine.title} has not started`);
    return site;
  };
}

async function inferenceOf(engine: RealEngine, mode: Mode): Promise<Record<string, unknown>> {
  if (mode === 'text') return { mode };
  return mode === 'token' ? { mode } : { mode: 'token', tokenizer: await engine.tokenizer?.() };
}

async function started(engine: RealEngine, parsers: readonly string[]): Promise<EngineServer> {
  const figures = figuresOf(engine.title);
  try {
    const server = await startEngine(engine, parsers);
    figures.startSeconds ||= server.startSeconds;
    return server;
  } catch (error) {
    figures.problem = (error as Error).message;
    throw error;
  }
}
