// Callers whose machines are gone without a word, in a network of the test's own.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { silentIn } from '../../services/common/lost-callers.ts';
import { createPort } from '../../services/common/port.ts';
import { parseAddress } from '../../services/common/specs/addresses.ts';
import { eventually } from '../support/eventually.ts';

const program = join(import.meta.dirname, '../support/gone-machines.ts');
const own = process.getuid?.() === 0 ? ['--net'] : ['--net', '--map-root-user'];
const inOwnNetwork = (...command: string[]) =>
  spawnSync('unshare', [...own, ...command], { encoding: 'utf8', timeout: 30_000 });

describe('callers whose machines are gone', () => {
  it('are cut while something is on its way to them, and none that stands still', function () {
    if (inOwnNetwork('ip', 'link').status !== 0) this.skip();
    const { stdout, stderr } = inOwnNetwork(process.execPath, program);
    const all = ['/read by HTTP/1', '/read by HTTP/2', '/unread by HTTP/1'];
    expect(stdout, stderr).to.equal(`${all.join(', ')}\nnone\n`);
  });

  it('are asked by the kernel whether they are there where nothing is on its way', async () => {
    const port = createPort(() => {});
    const listening = await port.listen(0);
    const caller = connect(listening, '127.0.0.1');
    await once(caller, 'connect');
    const [here = '', there = ''] = [listening, caller.localPort ?? 0].map((one) =>
      one.toString(16).toUpperCase().padStart(4, '0'),
    );
    const row = new RegExp(`:${here} \\w+:${there} 01 \\S+ (\\d\\d):`);
    const asked = async () => row.exec(await readFile('/proc/net/tcp', 'latin1'))?.[1];
    await eventually('its timer runs', async () => (await asked()) === '02');
    caller.destroy();
    await port.close(0);
  });

  it('are told by what the kernel counts, of either version of IP', () => {
    const row = (local: string, remote: string, repeats: string, questions: number): string =>
      `   2: ${local}:1F90 ${remote} 01 00000001:00000000 01:00000026 ${repeats}     0        ${questions} 13`;
    const row4 = (remote: string, repeats: string, questions: number) =>
      row('0100007F', remote, repeats, questions);
    const row6 = (remote: string) => row('00000000000000000000000001000000', `${remote}:01BB`, '00000001', 0);
    const rows = [
      row4('0200007F:0001', '00000000', 1),
      row4('0200007F:0002', '0000000A', 0),
      row4('0A00000A:FFFF', '00000000', 2),
      row6('B80D0120000000000000000001000000'),
      row6('0000000000000000FFFF00000300007F'),
    ];
    const remotes = silentIn(['head', ...rows, ''].join('\n')).map((one) => one.split(' '));
    const address = (text: string) => String(parseAddress(text)?.value);
    expect(remotes).to.deep.equal([
      ['8080', '4', address('127.0.0.2'), '2'],
      ['8080', '4', address('10.0.0.10'), '65535'],
      ['8080', '6', address('2001:db8::1'), '443'],
      ['8080', '4', address('127.0.0.3'), '443'],
    ]);
  });
});
