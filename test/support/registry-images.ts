// A registry that has images, made of folders: docker takes one on 127.0.0.1 without TLS.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { arch } from 'node:process';
import { sha256 } from '../../services/common/ids.ts';

const TYPES = {
  manifest: 'application/vnd.docker.distribution.manifest.v2+json',
  config: 'application/vnd.docker.container.image.v1+json',
  layer: 'application/vnd.docker.image.rootfs.diff.tar',
};
const TAR_BYTES_MAX = 1 << 28;
const ARCHES: Readonly<Record<string, string>> = { x64: 'amd64' };

interface Blob {
  readonly type: string;
  readonly bytes: Buffer;
}

export interface ImageRegistry extends AsyncDisposable {
  /** Requests for layers so far, of all images. */
  readonly fetched: number;
  /** Have an image of a folder's files; what a task names. */
  add(name: string, folder: string): string;
  /** Layers that are asked for from now on never come. */
  hold(): void;
}

export async function startImageRegistry(): Promise<ImageRegistry> {
  const blobs = new Map<string, Blob>();
  const manifests = new Map<string, string>();
  let fetched = 0;
  let isHeld = false;
  const store = (type: string, bytes: Buffer) => {
    const digest = `sha256:${sha256(bytes)}`;
    blobs.set(digest, { type, bytes });
    return { mediaType: type, size: bytes.byteLength, digest };
  };
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    response.setHeader('docker-distribution-api-version', 'registry/2.0');
    const [, name = '', kind, reference = ''] =
      /^\/v2\/(.+)\/(manifests|blobs)\/(.+)$/.exec(request.url ?? '') ?? [];
    const digest = kind === 'manifests' ? (manifests.get(`${name}:${reference}`) ?? reference) : reference;
    const blob = blobs.get(digest);
    if (blob === undefined) return void response.writeHead(request.url === '/v2/' ? 200 : 404).end('{}');
    if (blob.type === TYPES.layer) fetched++;
    if (blob.type === TYPES.layer && isHeld) return;
    response.setHeader('content-type', blob.type);
    response.setHeader('content-length', blob.bytes.byteLength);
    response.setHeader('docker-content-digest', digest);
    response.end(request.method === 'HEAD' ? undefined : blob.bytes);
  };
  const server = createServer(answer);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    get fetched() {
      return fetched;
    },
    add(name, folder) {
      const tar = execFileSync('tar', ['-C', folder, '-c', '.'], { maxBuffer: TAR_BYTES_MAX });
      const layer = store(TYPES.layer, tar);
      const rootfs = { type: 'layers', diff_ids: [layer.digest] };
      const about = { architecture: ARCHES[arch] ?? arch, os: 'linux', config: {}, rootfs };
      const config = store(TYPES.config, Buffer.from(JSON.stringify(about)));
      const manifest = { schemaVersion: 2, mediaType: TYPES.manifest, config, layers: [layer] };
      const { digest } = store(TYPES.manifest, Buffer.from(JSON.stringify(manifest)));
      manifests.set(`${name}:1`, digest);
      return `${host}/${name}:1`;
    },
    hold() {
      isHeld = true;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
