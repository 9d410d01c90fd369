// What this command line shows of itself to a mesh, and which certificates it trusts.
import type { Credentials } from '../../services/common/client.ts';
import type { CertificateFiles } from '../../services/common/config/certificates.ts';
import { CertificateStore } from '../../services/common/tls/certificates.ts';
import { type Arguments, textFlag } from './arguments.ts';
import { environment } from './config.ts';
import { complain } from './output/say.ts';
import { meshTopologyOf } from './topology-file.ts';

let given: Arguments | undefined;
let store: CertificateStore | undefined;

/** Once, for the command that runs. */
export function useCertificatesOf(args: Arguments): void {
  given = args;
}

/** For calls at this address. Throws INVALID_CONFIG for certificates that cannot be used. */
export function credentialsFor(url: string): Credentials {
  const { token } = environment;
  if (token !== undefined) warnOfPlain(url);
  if (!url.startsWith('https:') || given === undefined) return { token };
  store ??= new CertificateStore(certificateFiles(given), (key) => FLAG_OF[key]);
  return { token, tls: store };
}

const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])$/;
let warned = false;

/** Once: a command calls many times. */
function warnOfPlain(url: string): void {
  const { protocol, hostname, host } = URL.parse(url) ?? {};
  if (warned || protocol !== 'http:' || LOOPBACK.test(hostname ?? '')) return;
  warned = true;
  complain(
    `POLAR_TOKEN goes to ${host} without TLS, for all on the way to read: see tls in docs/topology.md`,
  );
}

const FLAG_OF: Readonly<Record<keyof CertificateFiles, string>> = {
  ca_file: '--ca (POLAR_CA_FILE, tls.ca_file)',
  cert_file: '--cert (POLAR_CERT_FILE, tls.cert_file)',
  key_file: '--key (POLAR_KEY_FILE, tls.key_file)',
  client_ca_file: 'tls.client_ca_file',
};

/** Flags before variables before the topology; who may read the mesh's own key may call with it. */
export function certificateFiles(args: Arguments): CertificateFiles {
  const { certificates } = environment;
  const { tls } = meshTopologyOf(args);
  const ca = textFlag(args, 'ca') ?? certificates.ca_file ?? tls?.ca_file;
  const cert = textFlag(args, 'cert') ?? certificates.cert_file;
  const key = textFlag(args, 'key') ?? certificates.key_file;
  const own =
    cert === undefined && tls?.client_ca_file !== undefined ? tls : { cert_file: cert, key_file: key };
  return {
    ...(ca !== undefined && { ca_file: ca }),
    ...(own.cert_file !== undefined && { cert_file: own.cert_file }),
    ...(own.key_file !== undefined && { key_file: own.key_file }),
  };
}
