// TLS of connections to NATS.
import { connect, type TlsOptions } from 'nats';
import type { CertificateStore } from '../tls/certificates.ts';
import { tlsClientOptions } from '../tls/client-options.ts';
import { tlsFault } from '../tls/faults.ts';

/** Files rather than what is in them: the client reads those for each connection. */
export function natsTlsOptions(store: CertificateStore, servers: readonly string[]): TlsOptions {
  const { cert_file: certFile, key_file: keyFile, ca_file: caFile } = store.files;
  const { checkServerIdentity } = tlsClientOptions(store, servers.map(hostOf));
  return {
    ...(certFile !== undefined && { certFile }),
    ...(keyFile !== undefined && { keyFile }),
    ...(caFile !== undefined && { caFile }),
    // Handed on to Node.js; the client knows no host where its server is an address.
    ...{ checkServerIdentity },
  };
}

const hostOf = (server: string): string =>
  new URL(server.includes('://') ? server : `nats://${server}`).hostname.replace(/^\[|\]$/g, '');

/** Undefined: it is not a matter of TLS. */
export function natsTlsFault(error: unknown): string | undefined {
  for (let at = error as Chained | undefined; at instanceof Error; at = at.chainedError) {
    const said = tlsFault(at);
    if (said !== undefined) return said;
    if (at.code === 'SERVER_OPT_NA')
      return 'the server has no TLS: take nats.tls out, or give it a certificate';
  }
  return undefined;
}

const REFUSED_MS = 2_000;

/**
 * Why a server that answered nothing refuses this side: TLS 1.3 tells who shows no good certificate when the client's library
 * does not listen any more, TLS 1.2 while it does. Undefined: it does not, or it is something else.
 */
export async function refusalOf(
  store: CertificateStore,
  servers: readonly string[],
  error: unknown,
): Promise<string | undefined> {
  if ((error as Chained).code !== 'TIMEOUT') return undefined;
  const tls = { ...natsTlsOptions(store, servers), maxVersion: 'TLSv1.2' };
  try {
    await (await connect({ servers: [...servers], tls, timeout: REFUSED_MS, reconnect: false })).close();
  } catch (refused) {
    return natsTlsFault(refused);
  }
  return undefined;
}

type Chained = Error & { readonly code?: string; readonly chainedError?: Chained };
