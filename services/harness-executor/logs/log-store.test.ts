import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { PolarError } from '../../common/errors.ts';
import { HARNESS_LOG_EDGE_BYTES, HARNESS_LOGS_KEPT_MAX } from '../../common/limits.ts';
import { LogStore } from './log-store.ts';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

describe('log store', () => {
  let folder: string;
  let store: LogStore;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-logs-'));
    store = await LogStore.open(folder);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const write = async (session: string, attempt: number, out: string, exitCode = 0): Promise<void> => {
    const log = store.begin(session, attempt);
    log.stdout(Buffer.from(out));
    log.stderr(Buffer.from('err'));
    await log.close(exitCode);
  };

  it('reads an attempt, and the last one', async () => {
    await write('s-0', 1, 'one', 3);
    await write('s-0', 10, 'ten');
    await write('s-0', 2, 'two');
    const one = await store.read('s-0', 1);
    expect([text(one.stdout), text(one.stderr), one.exitCode, one.attempt]).to.deep.equal([
      'one',
      'err',
      3,
      1,
    ]);
    expect((await store.read('s-0', 0)).attempt).to.equal(10);
  });

  it('tells of output that the sandbox did not hand on', async () => {
    const log = store.begin('s-0', 1);
    log.stdout(Buffer.alloc(2 * HARNESS_LOG_EDGE_BYTES, 'x'));
    log.stderr(Buffer.alloc(2 * HARNESS_LOG_EDGE_BYTES, 'y'));
    await log.close(0, { stdout: 1_000, stderr: 7 });
    const { stdout, stderr, stdoutSize, stderrSize } = await store.read('s-0', 1);
    expect(text(stdout)).to.contain('x\n[1000 bytes left out]\nx');
    expect(text(stderr)).to.contain('y\n[7 bytes left out]\ny');
    expect(
      [Number(stdoutSize), Number(stderrSize)].map((one) => one - 2 * HARNESS_LOG_EDGE_BYTES),
    ).to.deep.equal([1_000, 7]);
  });

  it('leaves nothing of what it cannot keep', async () => {
    mkdirSync(join(folder, 's-0.1.log'));
    const error = await write('s-0', 1, 'one').catch((thrown) => thrown);
    expect(error).to.be.instanceOf(Error);
    expect(readdirSync(folder)).to.deep.equal(['s-0.1.log']);
  });

  it('reads what is still being written', async () => {
    const log = store.begin('s-0', 1);
    log.stdout(Buffer.from('so far'));
    expect(text((await store.read('s-0', 0)).stdout)).to.equal('so far');
    await log.close(0);
  });

  it('finds everything again after a restart, but for half-written files', async () => {
    await write('s-0', 1, 'one');
    writeFileSync(join(folder, 's-1.1.log.part'), 'half');
    const again = await LogStore.open(folder);
    expect(text((await again.read('s-0', 0)).stdout)).to.equal('one');
    expect(readdirSync(folder)).to.deep.equal(['s-0.1.log']);
  });

  it('says what is not there', async () => {
    await write('s-0', 1, 'one');
    for (const [session, attempt] of [
      ['s-0', 2],
      ['s-1', 0],
      ['s', 0],
    ] as const) {
      const error = await store.read(session, attempt).catch((thrown) => thrown);
      expect(error).to.be.instanceOf(PolarError);
      expect(error.reason).to.equal('NOT_FOUND');
    }
  });

  it('keeps the newest attempts only', async () => {
    for (let i = 0; i < HARNESS_LOGS_KEPT_MAX; i++) writeFileSync(join(folder, `old-${i}.1.log`), '');
    store = await LogStore.open(folder);
    await write('new-0', 1, 'one');
    expect(readdirSync(folder)).to.have.length(HARNESS_LOGS_KEPT_MAX).and.to.include('new-0.1.log');
  });
});
