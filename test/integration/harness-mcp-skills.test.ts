// MCP servers and skills of a task reach the real CLIs that take them: a tool of the server is called in the sandbox, and
// the skill stands in the prompt that the engine was given.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { loadModel } from '../../examples/scripted-engine/tokenizer/tokenizer.ts';
import { AttemptRefSchema, RunWorkSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { execCollected } from '../../services/common/exec.ts';
import { HARNESS_INSTALL_MS } from '../../services/common/limits.ts';
import { TAKES_SKILLS } from '../../services/common/specs/catalogue.ts';
import { ADAPTERS } from '../../services/harness-executor/adapters/index.ts';
import { ensureInstalled } from '../../services/harness-executor/installs/install.ts';
import { launchOf } from '../../services/harness-executor/runs/launch.ts';
import { sandboxPython } from '../../services/harness-executor/runs/sandbox-python.ts';
import { expand } from '../../services/reconstructor/domain/expand.ts';
import { idsOf } from '../../services/reconstructor/domain/token-tree.ts';
import { CACHE } from '../conformance/installs.ts';
import { type Site, startSite } from '../conformance/site.ts';
import { NEWER_IMAGE, needsNewer, newerIsThere } from '../support/newer-debian.ts';
import { bwrapIsThere } from '../support/runtime-prewarm.ts';

const SERVER = '/polar/session/mcp_server.py';
const REMEMBERED = '/polar/session/workspace/remembered.txt';
const SKILL = '---\nname: juggling\ndescription: How to keep seven turnips in the air.\n---\nSlowly.\n';
/** Longer than some wait for a server without which they would do. */
const SLOWLY = 'sleep 1.5; exec "$0" "$@"';
const RUN_MS = 60_000;

/** What each of them calls the server's tool. */
const TOOLS: Readonly<Record<string, string>> = {
  claude_code: 'mcp__probe__remember',
  codex: 'mcp__probe__remember',
  gemini_cli: 'mcp_probe_remember',
  qwen_code: 'mcp__probe__remember',
  opencode: 'probe_remember',
  openhands_sdk: 'remember',
};

const script = (name: string): object => ({
  when: `for ${name}`,
  variants: [
    {
      name: 'only',
      steps: [{ calls: [{ tool: TOOLS[name], arguments: { text: `by ${name}` } }] }, { text: 'Done.' }],
    },
  ],
  after: { text: 'Done.' },
});

const left = newerIsThere() ? [] : await whatNeedsNewer();
for (const name of left) {
  process.stdout.write(
    `      without ${name}: no Python here is new enough; \`npm run test:harnesses\` makes an image with one\n`,
  );
}
const HARNESSES = TAKES_SKILLS.filter((name) => !left.includes(name));

async function whatNeedsNewer(): Promise<string[]> {
  const needs = await Promise.all(TAKES_SKILLS.map((name) => needsNewer(ADAPTERS[name])));
  return TAKES_SKILLS.filter((_, i) => needs[i]);
}

if (bwrapIsThere) {
  describe('MCP servers and skills', function () {
    this.timeout(HARNESS_INSTALL_MS);
    let site: Site;
    before(async () => {
      site = await startSite({ engine: 'sglang' }, HARNESSES.map(script));
    });
    after(() => site?.[Symbol.asyncDispose]());

    for (const name of HARNESSES) {
      it(`reach ${name}`, async () => {
        const adapter = ADAPTERS[name];
        const quiet = { started: () => {}, progress: () => {}, done: () => {} };
        const signal = AbortSignal.timeout(HARNESS_INSTALL_MS);
        const { proxy, node } = site;
        const capability = await proxy.admit(name);
        const spec = (await needsNewer(adapter)) ? { image: NEWER_IMAGE } : {};
        const runtimeId = await node.acquire({ spec, session: name, ttlMs: HARNESS_INSTALL_MS });
        const python = await sandboxPython(node.runtimes, runtimeId, adapter, signal);
        const installed = await ensureInstalled(
          CACHE,
          { ...adapter, python: python?.version },
          quiet,
          signal,
        );
        const server = { name: 'probe', transport: 'stdio', command: 'sh' };
        const { files, command } = launchOf(adapter, {
          ref: create(AttemptRefSchema, { sessionId: name, attempt: 1, taskId: 'mcp' }),
          work: create(RunWorkSchema, {
            proxyUrl: 'http://127.0.0.1:4141',
            instruction: `Remember something for ${name}.`,
            harness: {
              name,
              mcpServers: [{ ...server, args: ['-c', SLOWLY, 'python3', SERVER, REMEMBERED] }],
              skills: [{ target: 'juggling/SKILL.md', content: Buffer.from(SKILL) }],
            },
          }),
          capability,
          installed,
          python: python?.path ?? '',
          nodeDir: join(process.execPath, '../..'),
        });
        const code = readFileSync(join(import.meta.dirname, '../support/mcp_server.py'));
        await node.runtimes.putFiles({ runtimeId, files: [...files, { target: SERVER, content: code }] });
        const request = { ...command, runtimeId, proxyAccess: true, timeoutMs: RUN_MS };
        const { stdout, stderr, result } = await execCollected(
          node.runtimes,
          request,
          AbortSignal.timeout(2 * RUN_MS),
        );
        const said = `${Buffer.from(stdout)}\n${Buffer.from(stderr)}`;
        expect(result.exitCode, said).to.equal(0);
        const { out } = await node.sh(runtimeId, `cat ${REMEMBERED}`, { timeoutMs: RUN_MS });
        expect(out, said).to.equal(`by ${name}`);
        const [first] = expand(await proxy.records(name));
        const ids = first === undefined ? [] : idsOf(first.prompt);
        expect(loadModel().tokenizer.decode([...ids])).to.contain('seven turnips');
        await node.runtimes.releaseRuntime({ runtimeId });
      });
    }
  });
}
