// What a harness's request asks for, from its path and headers alone.

/** The provider APIs that harnesses speak. */
export type DialectName = 'openai-chat' | 'openai-responses' | 'anthropic-messages' | 'google-generate';

/** A call of the model. */
export interface GenerateTarget {
  readonly kind: 'generate';
  readonly dialect: DialectName;
  /** Model and form of the answer, where the path says them: google-generate. */
  readonly model?: string;
  readonly stream?: boolean;
  /** A stream of events; false: of one JSON array. */
  readonly events?: boolean;
}

/** A question for the length of a prompt. */
export interface CountTarget {
  readonly kind: 'count';
  readonly dialect: DialectName;
  readonly model?: string;
}

/** What is asked for. */
export type Target =
  | GenerateTarget
  | CountTarget
  /** Ids of a text or a conversation, as engines offer it beside openai-chat. */
  | { readonly kind: 'tokenize'; readonly dialect: DialectName }
  | { readonly kind: 'models'; readonly dialect: DialectName }
  | { readonly kind: 'model'; readonly dialect: DialectName; readonly id: string }
  | { readonly kind: 'root'; readonly dialect: DialectName }
  /** `path` is what there is behind capability and version. */
  | { readonly kind: 'unknown'; readonly dialect: DialectName; readonly path: string };

export interface Request {
  readonly target: Target;
  /** Credentials offered, the one in the path first. */
  readonly capabilities: readonly string[];
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

const NO_PARAMETERS = new URLSearchParams();

/** What a client puts before the path where it takes this for its HTTP proxy. */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

/** `/s/<capability>/v1/chat/completions`, or the same without the first part and the capability as API key. */
export function readPath(url: string, headers: Headers): Request {
  const [asked = '', query = ''] = url.replace(ORIGIN, '').split('#', 1)[0]?.split('?') ?? [];
  const parameters = query === '' ? NO_PARAMETERS : new URLSearchParams(query);
  const [, capability, rest = asked] = /^\/+s\/([^/]+)(.*)$/.exec(asked) ?? [];
  const offered = [capability, ...apiKeys(headers), parameters.get('key')];
  const capabilities = offered.filter((one) => typeof one === 'string' && one !== '') as string[];
  // A base URL that ends in a slash gives two.
  const path = rest.includes('//') ? rest.replaceAll(/\/{2,}/g, '/') : rest;
  return { target: targetOf(path, parameters, headers), capabilities };
}

function apiKeys(headers: Headers): (string | string[] | undefined)[] {
  const { authorization, 'x-api-key': key, 'x-goog-api-key': googleKey } = headers;
  const bearer = typeof authorization === 'string' ? /^bearer +(\S+)$/i.exec(authorization)?.[1] : undefined;
  return [bearer, key, googleKey];
}

const FIXED: Readonly<Record<string, Target>> = {
  '': { kind: 'root', dialect: 'openai-chat' },
  '/chat/completions': { kind: 'generate', dialect: 'openai-chat' },
  '/tokenize': { kind: 'tokenize', dialect: 'openai-chat' },
  '/responses': { kind: 'generate', dialect: 'openai-responses' },
  '/responses/input_tokens': { kind: 'count', dialect: 'openai-responses' },
  '/messages': { kind: 'generate', dialect: 'anthropic-messages' },
  '/messages/count_tokens': { kind: 'count', dialect: 'anthropic-messages' },
};

/** Google's API by its versions, and by the places that Google Cloud has for its models. */
const GOOGLE =
  /^(?:\/v1(?:beta1?|alpha))?(?:\/projects\/[^/]+\/locations\/[^/]+)?(?:\/publishers\/google)?(?=\/)/;
const MODELS = /^\/models(?:\/(.+))?$/;

/** Clients append to a base URL that may or may not end in /v1, so that it can be there not at all, once or twice. */
function targetOf(path: string, parameters: URLSearchParams, headers: Headers): Target {
  const rest = decoded(path.replace(/^(\/v1){1,2}(?=\/|$)/, '').replace(/\/$/, ''));
  if (rest === undefined) return { kind: 'unknown', dialect: dialectFor(path, headers), path };
  const fixed = Object.hasOwn(FIXED, rest) ? FIXED[rest] : undefined;
  if (fixed !== undefined) return fixed;
  const [google = ''] = GOOGLE.exec(rest) ?? [];
  const dialect = google === '' ? dialectFor(rest, headers) : 'google-generate';
  const found = MODELS.exec(rest.slice(google.length));
  if (found === null) return { kind: 'unknown', dialect, path: rest.slice(google.length) };
  return found[1] === undefined ? { kind: 'models', dialect } : ofModel(found[1], dialect, parameters);
}

/** Whose form an answer takes: Anthropic's and Google's clients ask at OpenAI's path for models too. */
function dialectFor(rest: string, headers: Headers): DialectName {
  if (rest.startsWith('/v1beta') || headers['x-goog-api-key'] !== undefined) return 'google-generate';
  if (rest.startsWith('/responses/')) return 'openai-responses';
  const anthropic = headers['anthropic-version'] !== undefined || rest.startsWith('/messages/');
  return anthropic ? 'anthropic-messages' : 'openai-chat';
}

/** `<model>` or `<model>:<method>`. */
function ofModel(text: string, dialect: DialectName, parameters: URLSearchParams): Target {
  const [, model = text, method] = /^(.*):([A-Za-z]+)$/.exec(text) ?? [];
  const google = 'google-generate';
  switch (method) {
    case 'generateContent':
      return { kind: 'generate', dialect: google, model, stream: false };
    case 'streamGenerateContent':
      return {
        kind: 'generate',
        dialect: google,
        model,
        stream: true,
        events: parameters.get('alt') === 'sse',
      };
    case 'countTokens':
      return { kind: 'count', dialect: google, model };
    default:
      // Model names may hold a colon.
      return { kind: 'model', dialect, id: text };
  }
}

function decoded(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
