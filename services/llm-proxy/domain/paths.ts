// What a harness's request asks for, from its path and headers alone.

/** What is asked for. */
export type Target =
  | { readonly kind: 'chat' }
  | { readonly kind: 'models' }
  | { readonly kind: 'model'; readonly id: string }
  | { readonly kind: 'root' }
  | { readonly kind: 'unknown' };

export interface Asked {
  readonly target: Target;
  /** Credentials offered, the one in the path first. */
  readonly capabilities: readonly string[];
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** `/s/<capability>/v1/chat/completions`, or the same without the first part and the capability as API key. */
export function readPath(url: string, headers: Headers): Asked {
  const path = url.split(/[?#]/, 1)[0] ?? '';
  const [, capability, rest] = /^\/s\/([^/]+)(.*)$/.exec(path) ?? [undefined, undefined, path];
  const capabilities = [capability, ...apiKeys(headers)].filter((one) => one !== undefined && one !== '');
  return { target: targetOf(rest ?? ''), capabilities: capabilities as string[] };
}

function apiKeys(headers: Headers): (string | undefined)[] {
  const { authorization, 'x-api-key': key } = headers;
  const bearer = typeof authorization === 'string' ? /^bearer +(\S+)$/i.exec(authorization)?.[1] : undefined;
  return [bearer, typeof key === 'string' ? key : undefined];
}

/** Clients append to a base URL that may or may not end in /v1, so that it can be there not at all, once or twice. */
function targetOf(path: string): Target {
  const rest = path.replace(/^(\/v1){1,2}(?=\/|$)/, '').replace(/\/+$/, '');
  if (rest === '/chat/completions') return { kind: 'chat' };
  if (rest === '/models') return { kind: 'models' };
  if (rest.startsWith('/models/')) {
    const id = decoded(rest.slice('/models/'.length));
    return id === undefined ? { kind: 'unknown' } : { kind: 'model', id };
  }
  return rest === '' ? { kind: 'root' } : { kind: 'unknown' };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
