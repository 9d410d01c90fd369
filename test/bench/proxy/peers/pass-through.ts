// The bare minimum on Node: bytes in, bytes out. What it costs is Node's HTTP itself.
//   node pass-through.ts PORT ENGINE_PORT
import { Agent, createServer, request } from 'node:http';
import process from 'node:process';

const [port = '0', enginePort = '0'] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: 2_048 });

createServer((asked, answer) => {
  const forwarded = request(
    {
      host: '127.0.0.1',
      port: enginePort,
      method: asked.method,
      path: asked.url,
      headers: asked.headers,
      agent,
    },
    (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    },
  );
  forwarded.on('error', () => answer.destroy());
  asked.pipe(forwarded);
}).listen(Number(port), '127.0.0.1');
