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
  let server: EngineServer | undefined;
  let proxy: TestProxy | undefined;
  before(async () => {
    try {
      server = await startEngine(engine);
    } catch (error) {
      figuresOf(engine.title).problem = (error as Error).message;
      throw error;
    }
    figuresOf(engine.title).startSeconds = server.startSeconds;
    proxy = await TestProxy.prepare({ engineUrl: server.url, kind: engine.kind });
    await proxy.spawn();
  }).timeout(START_MS);
  after(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });
  return () => {
    if (server === undefined || proxy === undefined) throw new Error(`${engine.title} has not started`);
    return { engine, url: server.url, proxy };
  };
}
