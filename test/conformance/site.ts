// What a CLI is run against: a real llm-proxy process on a real NATS, a scripted engine behind it, and sandboxes whose
// only network is that proxy. One for each kind of engine.
import { join } from 'node:path';
import { sglang } from '../../examples/scripted-engine/dialects/sglang.ts';
import { vllm } from '../../examples/scripted-engine/dialects/vllm.ts';
import { parseScript } from '../../examples/scripted-engine/script/schema.ts';
import { startEngine } from '../../examples/scripted-engine/server.ts';
import { DEFAULT_SWITCHES, mergeSwitches } from '../../examples/scripted-engine/switches.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { startNode, type TestNode } from '../support/runtime-prewarm.ts';
import type { Case } from './cases/case.ts';
import { CACHE } from './installs.ts';

export interface Site extends AsyncDisposable {
  readonly proxy: TestProxy;
  readonly node: TestNode;
}

/** `scripts` as scriptsOf() gives them. */
export async function startSite(
  { engine: kind, switches }: Pick<Case, 'engine' | 'switches'>,
  scripts: readonly object[],
): Promise<Site> {
  await using stack = new AsyncDisposableStack();
  const engine = stack.use(
    await startEngine({
      port: 0,
      dialect: { sglang, vllm }[kind],
      scripts: scripts.map((one) => parseScript(JSON.stringify(one), 'a conformance script')),
      switches: mergeSwitches(DEFAULT_SWITCHES, switches),
      modelName: 'scripted-qwen3',
    }),
  );
  const proxy = stack.use(await TestProxy.prepare({ engineUrl: engine.url, kind }));
  await proxy.spawn();
  const node = { public_url: proxy.url, cache_dir: CACHE, images_dir: join(CACHE, 'images') };
  const sandboxes = stack.use(await startNode({ natsUrl: proxy.nats.url, node, proxy: proxy.socket }));
  const owned = stack.move();
  return { proxy, node: sandboxes, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
