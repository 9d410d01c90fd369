// The proxies as every sandbox with a network of its own sees them: on its own loopback.

/** Of the LLM proxy. */
export const PROXY_PORT = 4141;
export const proxyUrl = `http://127.0.0.1:${PROXY_PORT}`;

/** Of the egress proxy. */
export const EGRESS_PORT = 4142;
const EGRESS_URL = `http://127.0.0.1:${EGRESS_PORT}`;
const DIRECT = 'localhost,127.0.0.1,::1';

/** For programs of images that name a proxy of their own: none of it is reached from a sandbox. */
export const DIRECT_ENV: Readonly<Record<string, string>> = { NO_PROXY: DIRECT, no_proxy: DIRECT };

/** What tells programs of the egress proxy. curl takes http_proxy in small letters only, Node.js only where it is told to. */
export const EGRESS_ENV: Readonly<Record<string, string>> = {
  ...DIRECT_ENV,
  ...{ HTTP_PROXY: EGRESS_URL, HTTPS_PROXY: EGRESS_URL },
  ...{ http_proxy: EGRESS_URL, https_proxy: EGRESS_URL },
  NODE_USE_ENV_PROXY: '1',
};
