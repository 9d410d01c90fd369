// Certificates for a test, made by openssl: an authority and what it has signed, below a folder.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const openssl = (...args: string[]): Buffer =>
  execFileSync('openssl', args, { stdio: ['ignore', 'pipe', 'pipe'] });
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
/** Too short for any connection. */
export const WEAK_KEY = ['-newkey', 'rsa:768', '-nodes'];

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export class Authority {
  readonly #folder: string;
  readonly #key: string;
  /** Its own certificate. */
  readonly file: string;

  constructor(folder: string, name: string, days = 2) {
    this.#folder = folder;
    this.#key = join(folder, `${name}.key`);
    this.file = join(folder, `${name}.pem`);
    const about = ['-x509', ...NEW_KEY, '-days', String(days), '-subj', `/CN=${name}`];
    openssl('req', ...about, '-keyout', this.#key, '-out', this.file);
  }

  /** `names` as in a certificate: `DNS:localhost`. `days` below 0: it has expired. */
  sign(name: string, names: readonly string[], days = 2, newKey = NEW_KEY): KeyPair {
    const at = (ending: string): string => join(this.#folder, `${name}.${ending}`);
    openssl('req', ...newKey, '-subj', `/CN=${name}`, '-keyout', at('key'), '-out', at('csr'));
    writeFileSync(at('ext'), `subjectAltName=${names.join(',')}\n`);
    const signed = ['-in', at('csr'), '-CA', this.file, '-CAkey', this.#key, '-extfile', at('ext')];
    // A certificate of no day ends in the second that it begins.
    openssl('x509', '-req', ...signed, '-set_serial', '0x1', '-days', String(days), '-out', at('pem'));
    return { cert: at('pem'), key: at('key') };
  }
}
