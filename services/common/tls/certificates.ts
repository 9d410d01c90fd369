// The one reader of certificates: files that a topology or a command line names, checked before anybody uses them, and
// read again when they have changed.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { CertificateFiles } from '../config/certificates.ts';
import { faulty } from '../config/faults.ts';
import { asPolarError, type FieldFault, type PolarError } from '../errors.ts';
import { versionOf } from '../file-version.ts';

/** Between two looks at the files. */
const LOOK_MS = 1_000;
const DAY_MS = 86_400_000;
/** Before it expires a certificate is told, once a day. */
const EXPIRY_TOLD_MS = 14 * DAY_MS;

/** In PEM. */
export interface Certificates {
  readonly cert?: string;
  readonly key?: string;
  readonly ca?: string;
  readonly clientCa?: string;
  /** Names of the certificate, as clients check them. */
  readonly names: readonly string[];
  /** The first of the files after whose last certificate nothing goes any more. */
  readonly expires: Expiry | undefined;
}

export interface Expiry {
  readonly file: string;
  readonly at: Date;
}

type NameOf = (field: keyof CertificateFiles) => string;

/** Certificates as they are on disk now, or were when they could last be used. */
export class CertificateStore {
  readonly files: CertificateFiles;
  readonly #nameOf: NameOf;
  #onFault: (error: PolarError) => void = () => {};
  #onExpiring: (expiry: Expiry) => void = () => {};
  #toldMs = Number.NEGATIVE_INFINITY;
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

  /** `told` hears at once, and once a day while the files are used, of what expires within 14 days. */
  onExpiring(told: (expiry: Expiry) => void): void {
    this.#onExpiring = told;
    this.#toldMs = Number.NEGATIVE_INFINITY;
    this.#tellExpiry(performance.now());
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
      this.#tellExpiry(now);
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

  #tellExpiry(nowMs: number): void {
    const { expires } = this.#current;
    if (expires === undefined || expires.at.getTime() - Date.now() > EXPIRY_TOLD_MS) return;
    if (nowMs - this.#toldMs < DAY_MS) return;
    this.#toldMs = nowMs;
    this.#onExpiring(expires);
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
  const [cert, own] = read('cert_file', ownOf);
  const [key, privateKey] = read('key_file', keyOf);
  const [ca, authority] = read('ca_file', authorityOf);
  const [clientCa, clientAuthority] = read('client_ca_file', authorityOf);
  if (own !== undefined && privateKey !== undefined && !own.checkPrivateKey(privateKey)) {
    const description = `${files.key_file} is not the key of the certificate in ${files.cert_file}`;
    faults.push({ field: nameOf('key_file'), description });
  }
  const fits = own !== undefined && faults.length === 0;
  const refused = fits ? refusalOf({ cert, key, ca: clientCa ?? ca ?? [] }) : undefined;
  if (refused !== undefined) {
    faults.push({ field: nameOf('cert_file'), description: `${files.cert_file}: ${refused}` });
  }
  if (faults.length > 0) throw faulty('INVALID_CONFIG', 'TLS', faults);
  return {
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(ca !== undefined && { ca }),
    ...(clientCa !== undefined && { clientCa }),
    names: own === undefined ? [] : namesOf(own),
    expires: firstOf([
      [files.cert_file, own],
      [files.ca_file, authority],
      [files.client_ca_file, clientAuthority],
    ]),
  };
}

function firstOf(
  used: readonly (readonly [string | undefined, X509Certificate | undefined])[],
): Expiry | undefined {
  const all = used.flatMap(([file, one]) => (file && one ? [{ file, at: one.validToDate }] : []));
  return all.sort((a, b) => a.at.getTime() - b.at.getTime())[0];
}

/** Why no connection can be made with what reads well: a key that is too short, a digest that is too weak. */
function refusalOf(options: SecureContextOptions): string | undefined {
  try {
    createSecureContext(options);
    return undefined;
  } catch (error) {
    return `is not taken: ${(error as Error).message}`;
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The first of a file. Behind it stands its chain, where peers find their way around what has expired. */
const ownOf = (pem: string): X509Certificate => validOf(certificatesOf(pem).slice(0, 1));

/** Any of a file: while an authority follows another it holds both, and the old one expires there. */
const authorityOf = (pem: string): X509Certificate => validOf(certificatesOf(pem));

function certificatesOf(pem: string): X509Certificate[] {
  const found = [...pem.matchAll(CERTIFICATE)].map(([one]) => new X509Certificate(one));
  if (found.length === 0) throw new Error('holds no certificate in PEM');
  return found;
}

/** The one that is valid longest. Throws where none is now. */
function validOf(found: readonly X509Certificate[]): X509Certificate {
  const [valid] = found
    .filter((one) => timeFault(one) === undefined)
    .sort((a, b) => b.validToDate.getTime() - a.validToDate.getTime());
  if (valid !== undefined) return valid;
  throw new Error(found.map(timeFault)[0]);
}

function timeFault({ validFromDate, validToDate }: X509Certificate): string | undefined {
  const now = Date.now();
  if (validToDate.getTime() < now) return `expired on ${validToDate.toISOString()}`;
  if (validFromDate.getTime() > now) return `is not valid before ${validFromDate.toISOString()}`;
  return undefined;
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
