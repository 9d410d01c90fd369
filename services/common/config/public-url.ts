// Addresses of the mesh's ports.
import type { z } from 'zod';

export type Scheme = 'http' | 'https';

/** Of all ports of the mesh. */
export const schemeOf = ({ tls }: { readonly tls?: object | undefined }): Scheme =>
  tls === undefined ? 'http' : 'https';

/** What is said to be the address, or the address itself, as this machine reaches it. */
export function publicUrl(
  at: { host: string; port: number; public_url?: string | undefined },
  scheme: Scheme,
): string {
  const name = at.host === '0.0.0.0' || at.host === '::' ? '127.0.0.1' : at.host;
  return at.public_url ?? `${scheme}://${name.includes(':') ? `[${name}]` : name}:${at.port}`;
}

/** Of a service on this machine that listens on the loopback alone. */
export const localUrl = (topology: { readonly tls?: object | undefined }, port: number): string =>
  `${schemeOf(topology)}://127.0.0.1:${port}`;

interface Told {
  readonly public_url?: string | undefined;
}

/** What callers are told has to be what a port with TLS takes. Without it something else may end TLS before the port. */
export function checkSchemes(
  { tls, rollout, reconstructor, gateway }: Addressed,
  ctx: z.core.$RefinementCtx<unknown>,
): void {
  if (tls === undefined) return;
  const check = ({ public_url: url }: Told, ...path: PropertyKey[]): void => {
    if (url === undefined || url.startsWith('https:')) return;
    const message = 'must be https://, as the mesh has TLS (tls)';
    ctx.addIssue({ code: 'custom', path: [...path, 'public_url'], message });
  };
  check(rollout, 'rollout');
  check(reconstructor, 'reconstructor');
  for (const [i, node] of gateway.nodes.entries()) check(node, 'gateway', 'nodes', i);
}

interface Addressed {
  readonly tls?: object | undefined;
  readonly rollout: Told;
  readonly reconstructor: Told;
  readonly gateway: { readonly nodes: readonly Told[] };
}
