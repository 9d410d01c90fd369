import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { memoryEvents } from './memory-events.ts';

describe('memory of a control group', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-memory-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);

  it('of v2 tells kills at its own limit from those of the whole machine', () => {
    write('memory.events', 'low 0\nhigh 0\nmax 7\noom 0\noom_kill 1\noom_group_kill 1\n');
    expect(memoryEvents(folder, true)).to.deep.equal({ oomKills: 1, limitHits: 0 });
    write('memory.events', 'low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n');
    expect(memoryEvents(folder, true)).to.deep.equal({ oomKills: 2, limitHits: 1 });
  });

  it('of v1 does so by what it had, too: not every kernel counts each hit', () => {
    write('memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n');
    write('memory.limit_in_bytes', '67108864\n');
    write('memory.failcnt', '0\n');
    write('memory.max_usage_in_bytes', '50000000\n');
    expect(memoryEvents(folder, false)).to.deep.equal({ oomKills: 1, limitHits: 0 });
    write('memory.max_usage_in_bytes', '67108864\n');
    expect(memoryEvents(folder, false)).to.deep.equal({ oomKills: 1, limitHits: 1 });
    write('memory.max_usage_in_bytes', '50000000\n');
    write('memory.failcnt', '74\n');
    expect(memoryEvents(folder, false)).to.deep.equal({ oomKills: 1, limitHits: 74 });
  });

  it('of which nothing can be read tells nothing', () => {
    for (const v2 of [true, false]) expect(memoryEvents(folder, v2).oomKills).to.equal(0);
  });
});
