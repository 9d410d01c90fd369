import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { followTask } from './watching.ts';

describe('following a task', () => {
  it('asks again where a scheduler says nothing any more', async () => {
    const stop = new AbortController();
    let asked = 0;
    // A machine that is gone neither answers nor ends its connections.
    const silent = createServer(() => ++asked === 2 && stop.abort()).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    expect(await followTask(url, 'task', () => {}, stop.signal, 30)).to.deep.equal([]);
    expect(asked).to.equal(2);
    silent.closeAllConnections();
    silent.close();
  });
});
