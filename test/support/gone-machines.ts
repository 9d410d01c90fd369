// Run in a network of its own: a port whose callers' machines are gone as soon as that network is down. Prints the calls that
// are open before, when some have long stood still, and that none is any more afterwards.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { SILENT_LOOKS_MAX } from '../../services/common/lost-callers.ts';
import { createPort, type Handler } from '../../services/common/port.ts';
import { eventually } from './eventually.ts';

const LOOK_MS = 50;
/** More than buffers take of it. */
const UNREAD_BYTES = 32 * 1024 * 1024;

const open = new Set<string>();
const handler: Handler = (request, answer) => {
  const response = answer as ServerResponse;
  const name = `${request.url} by HTTP/${request.httpVersionMajor}`;
  const writes = setInterval(() => request.url === '/read' && response.write('on'), LOOK_MS / 2);
  response.once('close', () => {
    clearInterval(writes);
    open.delete(name);
  });
  response.write(request.url === '/unread' ? Buffer.alloc(UNREAD_BYTES) : 'begins');
  open.add(name);
};
const net = (state: string): unknown => execFileSync('ip', ['link', 'set', 'lo', state]);

net('up');
const port = await createPort(handler, { lookMs: LOOK_MS }).listen(0);
const session = connectHttp2(`http://127.0.0.1:${port}`).on('error', () => {});
const call = session.request({ ':path': '/read' }).on('error', () => {});
await once(call.resume(), 'response');
for (const path of ['/read', '/unread']) {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await once(socket, 'readable');
  if (path === '/read') socket.resume();
}
await sleep(4 * SILENT_LOOKS_MAX * LOOK_MS);
console.log([...open].sort().join(', '));
net('down');
await eventually('all are cut', () => open.size === 0);
console.log('none');
process.exit();
