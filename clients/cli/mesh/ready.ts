// Whether a part of the mesh is ready.
import { get } from 'node:https';
import { PolarError } from '../../../services/common/errors.ts';
import type { CertificateStore } from '../../../services/common/tls/certificates.ts';
import { tlsClientOptions } from '../../../services/common/tls/client-options.ts';
import { tlsFault } from '../../../services/common/tls/faults.ts';

const ANSWER_MS = 1_000;

/** Answers with 200 at http://, or at https:// with the mesh's certificate. Throws TLS_FAILED, which waiting does not mend. */
export function answersOk(url: string, tls: CertificateStore | undefined): Promise<boolean> {
  const signal = AbortSignal.timeout(ANSWER_MS);
  if (!url.startsWith('https:')) {
    return fetch(url, { signal }).then(
      ({ ok }) => ok,
      () => false,
    );
  }
  return new Promise((resolve, reject) => {
    const options = tlsClientOptions(tls, [new URL(url).hostname]);
    get(url, { ...options, agent: false, signal }, (response) => {
      resolve(response.statusCode === 200);
      response.destroy();
    }).once('error', (error) => {
      const fault = tlsFault(error);
      if (fault === undefined) resolve(false);
      else reject(new PolarError('TLS_FAILED', `${url}: ${fault}`, { cause: error }));
    });
  });
}
