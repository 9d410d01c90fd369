// A real engine and a proxy in front of it, each a process of its own, for the tests of one engine.
import { TestProxy } from '../support/llm-proxy.ts';
import { figuresOf } from './figures.ts';
import type { RealEngine } from './kinds/engine.ts';
import { type EngineServer, startEngine } from './server.ts';

const START_MS = 15 * 60_000;

export interface Site {
  readonly engine: RealEngine;
  /** Of the engine. */
  readonly url: string;
  readonly proxy: TestProxy;
}

/** Started before the first test of the suite that calls this, ended after its last. */
export function useSite(engine: RealEngine): () => Site {
  const stack = new AsyncDisposableStack();
  let site: Site | undefined;
  before(async () => {
    const server = stack.use(await started(engine));
    const proxy = stack.use(await TestProxy.prepare({ engineUrl: server.url, kind: engine.kind }));
    await proxy.spawn();
    site = { engine, url: server.url, proxy };
  }).timeout(START_MS);
  after(() => stack.disposeAsync());
  return () => {
    if (site === undefined) throw new Error(`${engine.title} has not started`);
    return site;
  };
}

async function started(engine: RealEngine): Promise<EngineServer> {
  const figures = figuresOf(engine.title);
  try {
    const server = await startEngine(engine);
    figures.startSeconds = server.startSeconds;
    return server;
  } catch (error) {
    figures.problem = (error as Error).message;
    throw error;
  }
}
