// What makes a connection to a server with TLS; the one place for calls and for NATS.
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import type { CertificateStore, Certificates } from './certificates.ts';

export interface TlsClientOptions {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined;
}

/** Read anew by every connection, as its fields are asked for then. Without a store the system's authorities are trusted. */
export function tlsClientOptions(
  store: CertificateStore | undefined,
  hosts: readonly string[],
): TlsClientOptions {
  return {
    get ca() {
      return store?.current.ca;
    },
    get cert() {
      return store?.current.cert;
    },
    get key() {
      return store?.current.key;
    },
    checkServerIdentity: (_, certificate) => identityFault(hosts, store?.current, certificate),
  };
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

/**
 * The certificate has to be for one of the hosts. What runs on this machine beside a service has the service's own
 * certificate, which need not name the loopback.
 */
function identityFault(
  hosts: readonly string[],
  own: Certificates | undefined,
  certificate: PeerCertificate,
): Error | undefined {
  const names = [...hosts, ...(hosts.some((host) => LOOPBACK.has(host)) ? (own?.names ?? []) : [])];
  const faults = names.map((name) => checkServerIdentity(name, certificate));
  return faults.includes(undefined) ? undefined : faults[0];
}
