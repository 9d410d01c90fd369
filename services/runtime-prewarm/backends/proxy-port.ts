// The LLM proxy as every sandbox with a network of its own sees it.

/** On the sandbox's own loopback. */
export const PROXY_PORT = 4141;
export const proxyUrl = `http://127.0.0.1:${PROXY_PORT}`;
