// Which NATS servers will do, and what is said of others.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect } from 'chai';
import { openBus } from '../../services/common/nats/bus.ts';
import { ensureNatsServer } from '../../tools/nats-server.mjs';
import { freePort } from '../support/nats.ts';

describe('nats servers', () => {
  for (const [what, told, fault] of [
    ['is too old', { version: '2.10.27' }, /is version 2\.10\.27, and 2\.11 or later is needed/],
    [
      'takes small messages only',
      { max_payload: 65_536 },
      /takes messages of 65536 bytes, .* raise max_payload/,
    ],
  ] as const) {
    it(`refuses a server that ${what}, and says so`, async () => {
      const info = {
        server_id: 'x',
        version: '2.12.0',
        proto: 1,
        headers: true,
        max_payload: 1 << 20,
        ...told,
      };
      const other = createServer((socket) => {
        socket.on('error', () => {}).write(`INFO ${JSON.stringify(info)}\r\n`);
        socket.on('data', (said) => said.includes('PING') && socket.write('PONG\r\n'));
      }).listen(0, '127.0.0.1');
      await once(other, 'listening');
      const url = `nats://127.0.0.1:${(other.address() as AddressInfo).port}`;
      const error = await openBus({ url, name: 'test' }).catch((reason) => reason);
      expect(error).to.have.property('reason', 'NATS_UNAVAILABLE');
      expect(error.message).to.contain(`NATS at ${url} `).and.to.match(fault);
      other.close();
    });
  }

  it('asks a cluster again that has no leader yet, as while its servers start', async () => {
    const answers = [
      { err_code: 10008, description: 'JetStream system temporarily unavailable' },
      { err_code: 10039, description: 'JetStream not enabled for account' },
    ];
    const cluster = createServer((socket) => {
      const info = { server_id: 'x', version: '2.12.0', proto: 1, headers: true, max_payload: 1 << 20 };
      socket.on('error', () => {}).write(`INFO ${JSON.stringify(info)}\r\n`);
      let sid = '';
      socket.on('data', (said) => {
        if (said.includes('PING')) socket.write('PONG\r\n');
        sid = /SUB \S+ (\d+)/.exec(String(said))?.[1] ?? sid;
        const inbox = /PUB \$JS\.API\.INFO (\S+)/.exec(String(said))?.[1];
        if (inbox === undefined) return;
        const answer = JSON.stringify({ error: { code: 503, ...answers.shift() } });
        socket.write(`MSG ${inbox} ${sid} ${answer.length}\r\n${answer}\r\n`);
      });
    }).listen(0, '127.0.0.1');
    await once(cluster, 'listening');
    const url = `nats://127.0.0.1:${(cluster.address() as AddressInfo).port}`;
    const error = await openBus({ url, name: 'test' }).catch((reason) => reason);
    cluster.close();
    expect(error.message).to.equal(`NATS at ${url}: JetStream not enabled for account`);
  });

  it('refuses a server without JetStream, and says how to start it', async () => {
    const port = await freePort();
    const args = ['--pdeathsig', 'KILL', ensureNatsServer(), '-a', '127.0.0.1', '-p', String(port)];
    const bare = spawn('setpriv', args, { stdio: 'ignore' });
    const exited = once(bare, 'exit');
    try {
      const url = `nats://127.0.0.1:${port}`;
      const error = await openBus({ url, name: 'test' }).catch((reason) => reason);
      expect(error).to.have.property('reason', 'NATS_UNAVAILABLE');
      expect(error.message).to.contain(`NATS at ${url} has no JetStream: start it with -js`);
    } finally {
      bare.kill('SIGKILL');
      await exited;
    }
  });
});
