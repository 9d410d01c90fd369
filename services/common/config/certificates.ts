// What the topology says of certificates: the files of one end of a connection, the same for the mesh and for NATS.
import { resolve } from 'node:path';
import { z } from 'zod';

const file = z.string().min(1);

const files = z.strictObject({
  /** Certificate of this end and of what leads to its authority, in PEM; and its key. */
  cert_file: file.optional(),
  key_file: file.optional(),
  /** Authorities whose certificates this end trusts where it calls; without it, the system's. */
  ca_file: file.optional(),
  /** Authorities of callers: with it, callers need a certificate. */
  client_ca_file: file.optional(),
});
export type CertificateFiles = z.output<typeof files>;

/** Of the mesh's own ports. */
export const serverCertificates = files.required({ cert_file: true, key_file: true });

/** Of connections to NATS; `polar up` serves with them, too. */
export const natsCertificates = files.refine(
  ({ cert_file: cert, key_file: key }) => (cert === undefined) === (key === undefined),
  { path: ['key_file'], message: 'and cert_file come together' },
);

/** The same with whole paths. */
export const resolved = <T extends CertificateFiles>(given: T): T =>
  Object.fromEntries(Object.entries(given).map(([key, path]) => [key, path && resolve(path)])) as T;
