// What a port with TLS serves by, and whom it refuses.
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import type { CertificateStore, Certificates } from './certificates.ts';

/** What changes with the files. */
export const secureContext = ({ cert, key, clientCa }: Certificates): SecureContextOptions => ({
  ...{ cert, key },
  ...(clientCa !== undefined && { ca: clientCa }),
});

/**
 * A caller without a good certificate is let in far enough to be told: an alert in the middle of a handshake reaches
 * few clients as what it is. `refusalOf` is asked before anything else is.
 */
export const tlsServerOptions = (store: CertificateStore) => ({
  ...secureContext(store.current),
  requestCert: store.mutual,
  rejectUnauthorized: false,
});

/** Why the calls of a connection are refused; undefined: they are not. */
export function refusalOf({ mutual }: CertificateStore, socket: Socket): string | undefined {
  // What HTTP/2 gives for its socket has these as well.
  const { encrypted, authorized, authorizationError: fault } = socket as Partial<TLSSocket>;
  if (encrypted !== true) return 'this port takes TLS alone: call it at https://';
  if (!mutual) return undefined;
  // Asked first: before 24.21 Node.js has every TLS 1.3 session that is resumed authorized, with a certificate or not.
  if ((socket as TLSSocket).getPeerX509Certificate() === undefined)
    return 'this port asks for a client certificate, and none was given (--cert and --key, POLAR_CERT_FILE and POLAR_KEY_FILE)';
  return authorized === true ? undefined : `the client certificate is not accepted here: ${String(fault)}`;
}
