// Whom a port refuses, by what Node.js says of a connection.
import type { TLSSocket } from 'node:tls';
import { expect } from 'chai';
import type { CertificateStore } from './certificates.ts';
import { refusalOf } from './server-options.ts';

describe('refusalOf', () => {
  const said = (authorized: boolean, given: boolean): string | undefined => {
    const getPeerX509Certificate = (): object | undefined => (given ? {} : undefined);
    const about = { encrypted: true, authorized, authorizationError: 'UNTRUSTED' };
    const socket: object = { ...about, getPeerX509Certificate };
    return refusalOf({ mutual: true } as CertificateStore, socket as TLSSocket);
  };

  it('refuses who gave no certificate, also where Node.js has the resumed session authorized', () => {
    expect(said(false, false)).to.contain('none was given');
    expect(said(true, false)).to.contain('none was given');
  });

  it('goes by what Node.js says of a certificate', () => {
    expect(said(false, true)).to.equal('the client certificate is not accepted here: UNTRUSTED');
    expect(said(true, true)).to.equal(undefined);
  });
});
