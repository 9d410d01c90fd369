// Groups as JSON over HTTP, as cheaply as a server can: arrays in memory, one JSON.stringify a request.
// usage: node-http.ts FILE   (groups as JSON); prints its port.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import process from 'node:process';

const groups = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as object[];
let asked = 0;

const server = createServer((_request, response) => {
  const body = JSON.stringify(groups[asked++ % groups.length]);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
