// The proxies as every sandbox with a network of its own sees them: on its own loopback.

/** Of the LLM proxy. */
export const PROXY_PORT = 4141;
export const proxyUrl = `http://127.0.0.1:${PROXY_PORT}`;

/** Of the egress proxy. */
export const EGRESS_PORT = 4142;
const EGRESS_URL = `http://127.0.0.1:${EGRESS_PORT}`;
const DIRECT = 'localhost,127.0.0.1,::1';

/** What tells programs of the egress proxy. curl takes http_proxy in small letters only, Node.js only where it is told to. */
export const EGRESS_ENV: Readonly<Record<string, string>> = {
  ...{ HTTP_PROXY: EGRESS_URL, HTTPS_PROXY: EGRESS_URL, NO_PROXY: DIRECT },
  ...{ http_proxy: EGRESS_URL, https_proxy: EGRESS_URL, no_proxy: DIRECT },
  NODE_USE_ENV_PROXY: '1',
};
