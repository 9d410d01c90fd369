// The one reader of certificates: files that a topology or a command line names, checked before anybody uses them, and
// read again when they have changed.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { CertificateFiles } from '../config/certificates.ts';
import { faulty } from '../config/faults.ts';
import { asPolarError, type FieldFault, type PolarError } from '../errors.ts';
import { versionOf } from '../file-version.ts';

/** Between two looks at the files. */
const LOOK_MS = 1_000;

/** In PEM. */
export interface Certificates {
  readonly cert?: string;
  readonly key?: string;
  readonly ca?: string;
  readonly clientCa?: string;
  /** Names of the certificate, as clients check them. */
  readonly names: readonly string[];
}

type NameOf = (field: keyof CertificateFiles) => string;

/** Certificates as they are on disk now, or were when they could last be used. */
export class CertificateStore {
  readonly files: CertificateFiles;
  readonly #nameOf: NameOf;
  #onFault: (error: PolarError) => void = () => {};
  #current: Certificates;
  #version: string;
  #lookedMs = performance.now();

  /**
   * Throws INVALID_CONFIG with every file that cannot be used.
   *
   * @param nameOf what errors call one of the files: its key in the topology, a flag
   */
  constructor(files: CertificateFiles, nameOf: NameOf) {
    this.files = files;
    this.#nameOf = nameOf;
    this.#version = versionsOf(files);
    this.#current = readCertificates(files, nameOf);
  }

  /** `told` hears of files that cannot be used any more; what they held before holds on. */
  onFault(told: (error: PolarError) => void): void {
    this.#onFault = told;
  }

  /** Callers need a certificate. */
  get mutual(): boolean {
    return this.files.client_ca_file !== undefined;
  }

  /** Another object after each change. */
  get current(): Certificates {
    const now = performance.now();
    if (now - this.#lookedMs >= LOOK_MS) {
      this.#lookedMs = now;
      this.#look();
    }
    return this.#current;
  }

  #look(): void {
    const version = versionsOf(this.files);
    if (version === this.#version) return;
    this.#version = version;
    try {
      this.#current = readCertificates(this.files, this.#nameOf);
    } catch (error) {
      this.#onFault(asPolarError(error));
    }
  }
}

const versionsOf = (files: CertificateFiles): string =>
  Object.values(files)
    .map((file) => versionOf(file ?? ''))
    .join(' ');

function readCertificates(files: CertificateFiles, nameOf: NameOf): Certificates {
  const faults: FieldFault[] = [];
  const read = <T>(field: keyof CertificateFiles, check: (pem: string) => T): [string?, T?] => {
    const file = files[field];
    if (file === undefined) return [];
    try {
      const pem = readFileSync(file, 'utf8');
      return [pem, check(pem)];
    } catch (error) {
      faults.push({ field: nameOf(field), description: `${file}: ${(error as Error).message}` });
      return [];
    }
  };
  const [cert, chain] = read('cert_file', certificatesOf);
  const [key, privateKey] = read('key_file', keyOf);
  const [ca] = read('ca_file', certificatesOf);
  const [clientCa] = read('client_ca_file', certificatesOf);
  const own = chain?.[0];
  if (own !== undefined && privateKey !== undefined && !own.checkPrivateKey(privateKey)) {
    const description = `${files.key_file} is not the key of the certificate in ${files.cert_file}`;
    faults.push({ field: nameOf('key_file'), description });
  }
  if (faults.length > 0) throw faulty('INVALID_CONFIG', 'TLS', faults);
  return {
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(ca !== undefined && { ca }),
    ...(clientCa !== undefined && { clientCa }),
    names: own === undefined ? [] : namesOf(own),
  };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** All of a file. Throws for one that is not valid now. */
function certificatesOf(pem: string): X509Certificate[] {
  const found = [...pem.matchAll(CERTIFICATE)].map(([one]) => new X509Certificate(one));
  if (found.length === 0) throw new Error('holds no certificate in PEM');
  const now = Date.now();
  for (const { validFromDate, validToDate } of found) {
    if (validToDate.getTime() < now) throw new Error(`expired on ${validToDate.toISOString()}`);
    if (validFromDate.getTime() > now) throw new Error(`is not valid before ${validFromDate.toISOString()}`);
  }
  return found;
}

function keyOf(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    throw new Error('holds no private key in PEM without a passphrase', { cause: error });
  }
}

const namesOf = ({ subjectAltName = '' }: X509Certificate): string[] =>
  [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,\s]+)/g)].flatMap(([, name]) => name ?? []);
