// Why two ends did not come to a connection by TLS, in words that say what to change.

const UNTRUSTED = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_(UNTRUSTED|REJECTED|SIGNATURE)|INVALID_CA)/;
/** What an answer without TLS reads like to who expects one with it. */
const PLAIN = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|wrong version number|packet length too long/;

/** Alerts of the other end. */
const REFUSED = /ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE)/;

/** Undefined: it is not a matter of TLS. */
export function tlsFault(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = 'code' in at && typeof at.code === 'string' ? at.code : '';
    const said = faultOf(code, at.message);
    if (said !== undefined) return said;
  }
  return undefined;
}

function faultOf(code: string, message: string): string | undefined {
  if (PLAIN.test(`${code} ${message}`)) return 'the port has no TLS: call it at http://';
  if (UNTRUSTED.test(code)) {
    return `the server's certificate is of no authority that is trusted here (${code}): name the file of its authority (ca_file, --ca, POLAR_CA_FILE)`;
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the server's certificate is for another name: ${message}`;
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return `the server's certificate is not valid now (${code})`;
  }
  if (REFUSED.test(code)) return `the server refuses this side's certificate, or asks for one (${code})`;
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') || code === 'EPROTO') {
    return `the server and this side do not agree on TLS (${code}): ${message.trim()}`;
  }
  return undefined;
}
