// Whether a part of the mesh is ready.
import { PolarError } from '../../../services/common/errors.ts';
import type { CertificateStore } from '../../../services/common/tls/certificates.ts';
import { tlsClientOptions } from '../../../services/common/tls/client-options.ts';
import { tlsFault } from '../../../services/common/tls/faults.ts';
import { getDirectly } from './get-directly.ts';

const ANSWER_MS = 1_000;

/** Answers with 200 at http://, or at https:// with the mesh's certificate. Throws TLS_FAILED, which waiting does not mend. */
export async function answersOk(url: string, tls: CertificateStore | undefined): Promise<boolean> {
  const { protocol, hostname } = new URL(url);
  const options = protocol === 'https:' ? tlsClientOptions(tls, [hostname]) : {};
  try {
    const response = await getDirectly(url, ANSWER_MS, options);
    response.destroy();
    return response.statusCode === 200;
  } catch (error) {
    const fault = tlsFault(error);
    if (fault === undefined) return false;
    throw new PolarError('TLS_FAILED', `${url}: ${fault}`, { cause: error });
  }
}
