import { expect } from 'chai';
import { isRefused } from './pull-failure.ts';

const REFUSED = [
  'manifest for python:nope not found: manifest unknown: manifest unknown',
  'manifest for 127.0.0.1:5000/tools/none:2 not found',
  'name unknown: Repository name not known to registry',
  "pull access denied for nope, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
  'Head "https://ghcr.io/v2/some/tools/manifests/1": denied: denied',
  'Head "https://quay.io/v2/some/tools/manifests/1": unauthorized: access to the requested resource is not authorized',
  'failed to resolve reference "docker.io/library/python:nope": docker.io/library/python:nope: not found',
  'failed to resolve reference "docker.io/some/tools:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed',
  'initializing source docker://python:nope: reading manifest nope in docker.io/library/python: manifest unknown',
  'initializing source docker://nope: reading manifest latest in docker.io/library/nope: requested access to the resource is denied',
  'short-name "tools" did not resolve to an alias and no unqualified-search registries are defined in "/etc/containers/registries.conf"',
  'invalid reference format: repository name must be lowercase',
  'normalizing image: normalizing name for compat API: repository name must be lowercase',
  'no matching manifest for linux/arm64/v8 in the manifest list entries',
];
const PASSING = [
  'unknown: internal server error',
  'received unexpected HTTP status: 503 Service Unavailable',
  'dial unix /run/proxy.sock: connect: permission denied',
  'Get "https://registry-1.docker.io/v2/": x509: certificate signed by unknown authority',
  'Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host',
  'dial tcp 127.0.0.1:1: connect: connection refused',
  'toomanyrequests: You have reached your pull rate limit',
  'error getting credentials - err: exec: "docker-credential-pass": executable file not found in $PATH, out: ``',
  'failed to register layer: write /usr/lib/x: no space left on device',
  'context deadline exceeded',
];

describe('an image that could not be fetched', () => {
  it('was refused where the registry does not have or give it', () => {
    for (const said of REFUSED) expect(isRefused(said), said).to.equal(true);
  });

  it('may come the next time where the way to it or the registry failed', () => {
    for (const said of PASSING) expect(isRefused(said), said).to.equal(false);
  });
});
