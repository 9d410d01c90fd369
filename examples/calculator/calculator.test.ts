import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { parse } from 'yaml';
import { runtimeSchema } from '../../services/common/specs/runtime.ts';
import { testOnOutputConfig } from '../../services/common/specs/strategies.ts';
import type { RunningEngine } from '../scripted-engine/server.ts';
import { startTestEngine } from '../scripted-engine/testing.ts';

const HERE = import.meta.dirname;
const read = (name: string): string => readFileSync(join(HERE, name), 'utf8');
const TASKS = ['task.yaml', 'task-shell.yaml'];

describe('the calculator example', function () {
  this.timeout(60_000);
  let engine: RunningEngine;
  let folder = '';
  before(async () => {
    engine = await startTestEngine({ script: read('script.yaml') });
    folder = mkdtempSync(join(tmpdir(), 'polar-test-calculator-'));
  });
  after(async () => {
    rmSync(folder, { recursive: true });
    await engine[Symbol.asyncDispose]();
  });

  /** Standard output of a Python program, whatever its exit code. */
  async function python(cwd: string, args: string[], env: Record<string, string> = {}): Promise<string> {
    const child = spawn('python3', ['-B', ...args], {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 2],
    });
    let text = '';
    child.stdout?.on('data', (part) => {
      text += part;
    });
    await once(child, 'close');
    return text;
  }

  const results = (output: string): Record<string, string> =>
    Object.fromEntries(
      [...output.matchAll(/^(PASSED|FAILED) (\S+)/gm)].map(([, result, name]) => [name, result]),
    );

  for (const name of TASKS) {
    it(`${name} is a task as the mesh reads it, with files that exist`, () => {
      const task = parse(read(name));
      const { prepare } = runtimeSchema.parse(task.runtime);
      const sources = prepare.flatMap((step) => ('source' in step ? [step.source] : []));
      expect(sources).to.include('calculator.py');
      for (const source of sources) expect(existsSync(join(HERE, source)), source).to.equal(true);
      expect(task.num_samples).to.equal(4);
    });

    it(`${name} expects what the test program says, and the task is not done at the start`, async () => {
      const { evaluator } = parse(read(name));
      const expected = testOnOutputConfig.parse(evaluator.config).expected_output_json;
      const found = results(await python(HERE, ['test_calculator.py']));
      expect(Object.keys(found)).to.have.members(Object.keys(expected as object));
      expect(Object.values(found)).to.include('FAILED');
    });
  }

  /** agent.py at work on a copy, with the seed that the proxy would set. */
  async function solve(seed: number): Promise<{ results: Record<string, string>; calls: number }> {
    const workspace = join(folder, `seed-${seed}`);
    for (const file of ['calculator.py', 'test_calculator.py'])
      cpSync(join(HERE, file), join(workspace, file));
    await using proxy = await startSeeding(engine.url, seed);
    const { instruction } = parse(read('task-shell.yaml'));
    await python(workspace, [join(HERE, 'agent.py'), instruction], {
      OPENAI_BASE_URL: `${proxy.url}/v1`,
      OPENAI_API_KEY: 'none',
      PYTHONDONTWRITEBYTECODE: '1',
    });
    return { results: results(await python(workspace, ['test_calculator.py'])), calls: proxy.calls() };
  }

  for (const [seed, solved] of [true, true, true, false].entries()) {
    it(`is ${solved ? 'solved' : 'not solved'} by sample ${seed}, in 4 to 6 calls`, async () => {
      const done = await solve(seed);
      expect(Object.values(done.results)).to.have.length(15);
      expect(Object.values(done.results).every((result) => result === 'PASSED')).to.equal(solved);
      expect(done.calls).to.be.within(4, 6);
    });
  }
});

interface Seeding extends AsyncDisposable {
  readonly url: string;
  calls(): number;
}

/** Hands requests on with a seed. */
async function startSeeding(engineUrl: string, seed: number): Promise<Seeding> {
  let calls = 0;
  const server = createServer(async (request, response) => {
    calls++;
    const parts: Buffer[] = [];
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
    const body = JSON.stringify({ ...JSON.parse(Buffer.concat(parts).toString()), seed });
    const reply = await fetch(`${engineUrl}${request.url}`, { method: 'POST', body });
    response.writeHead(reply.status, { 'content-type': 'application/json' }).end(await reply.text());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: () => calls,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}
