import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { createPort } from './port.ts';

describe('a port', () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((one) => one === 'Timeout').length;

  it('leaves no timer behind of connections that said nothing', async () => {
    const port = createPort((_, response) => response.end());
    const listening = await port.listen(0);
    const before = timers();
    const silent = [connect(listening, '127.0.0.1'), connect(listening, '127.0.0.1')];
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    // One leaves by itself; of the other the server has heard when it closes.
    silent[0]?.destroy();
    await new Promise((resolve) => setTimeout(resolve, 20));
    await port.close();
    for (const socket of silent) socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(timers()).to.equal(before);
  });
});
