// The game without a mesh and without a model: the agent plays what a script tells it, and the judge looks at what it left.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { startTestEngine } from '../scripted-engine/testing.ts';

const HERE = import.meta.dirname;
const KEYS = [5, 2, 8, 1, 6];
/** As the sandbox runs it. */
const PYTHON = ['-S', '-E', '-B'];

interface Played {
  readonly tried: unknown;
  /** Model calls. */
  readonly calls: number;
  readonly verdict: string;
}

describe('the game of train_cpu', function () {
  this.timeout(30_000);
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-doors-'));
    for (const name of ['doors.py', 'agent.py', 'judge.py']) cpSync(join(HERE, name), join(folder, name));
    writeFileSync(join(folder, 'keys.json'), JSON.stringify(KEYS));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** The agent with a model that makes these calls one after the other, and then says that it is done. */
  async function play(calls: readonly object[]): Promise<Played> {
    const steps = [...calls.map((call) => ({ calls: [{ tool: 'open', ...call }] })), { text: 'Done.' }];
    const script = stringify({ variants: [{ name: 'plays', steps }] });
    await using engine = await startTestEngine({ script });
    const child = spawn('python3', [...PYTHON, 'agent.py'], {
      cwd: folder,
      env: {
        ...process.env,
        OPENAI_BASE_URL: `${engine.url}/v1`,
        OPENAI_API_KEY: 'none',
        POLAR_INSTRUCTION: 'Go through 4 doors. The key fits door 5.',
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [code] = await once(child, 'close');
    expect(code).to.equal(0);
    const stats = (await (await fetch(`${engine.url}/stats`)).json()) as { calls: number };
    const verdict = execFileSync('python3', [...PYTHON, 'judge.py'], { cwd: folder, encoding: 'utf8' });
    const tried: unknown = JSON.parse(readFileSync(join(folder, 'tried.json'), 'utf8'));
    return { tried, calls: stats.calls, verdict: verdict.trim() };
  }

  const open = (...doors: number[]): object[] => doors.map((door) => ({ arguments: { door } }));

  it('is won by using each key, and over with the fourth door', async () => {
    expect(await play(open(5, 2, 8, 1, 6))).to.deep.equal({
      tried: [5, 2, 8, 1],
      calls: 4,
      verdict: 'PASSED out',
    });
  });

  it('is won with one mistake', async () => {
    expect(await play(open(5, 3, 8, 1, 6))).to.deep.equal({
      tried: [5, 3, 8, 1, 6],
      calls: 5,
      verdict: 'PASSED out',
    });
  });

  it('is lost with two', async () => {
    expect(await play(open(5, 3, 8, 2, 6, 6))).to.deep.equal({
      tried: [5, 3, 8, 2, 6],
      calls: 5,
      verdict: 'FAILED out',
    });
  });

  it('is lost where the model stops early, and by calls that name no door', async () => {
    expect(await play(open(5, 2))).to.include({ calls: 3, verdict: 'FAILED out' });
    const odd = [{ arguments: { door: 'five' } }, { arguments: {} }, ...open(8, 1, 6)];
    expect(await play(odd)).to.deep.equal({ tried: [0, 0, 8, 1, 6], calls: 5, verdict: 'FAILED out' });
  });
});
