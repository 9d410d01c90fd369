// Paths of the providers' APIs that the proxy does not offer: answered with 404, and with words that say why.
import type { DialectName } from '../domain/paths.ts';
import { type Feature, featuresOf, type Rules } from './features.ts';

const refused = (rules: Readonly<Record<string, string>>): Rules =>
  Object.fromEntries(Object.entries(rules).map(([path, how]) => [path, { support: 'refused', how }]));

const STATELESS = 'nothing is stored for the harness: send the whole conversation with each call';
const FILES = 'files are not offered: send their text';
const BATCHES = 'batches are not offered: send each request by itself';

/** By the head of the path behind capability and version; in Google's API the method may stand alone. */
const RULES: Readonly<Record<DialectName, Rules>> = {
  'openai-chat': refused({
    '/chat/completions/': STATELESS,
    '/completions': 'a prompt without messages is not offered: call /v1/chat/completions',
    '/embeddings': 'only text is generated',
    '/audio': 'only text is generated',
    '/images': 'only text is generated',
    '/files': FILES,
    '/batches': BATCHES,
  }),
  'openai-responses': refused({
    '/responses/compact': 'compaction is the harness’s own',
    '/responses/':
      'is not shown again: name it as previous_response_id, or send the whole conversation with each call',
    '/conversations': STATELESS,
  }),
  'anthropic-messages': refused({
    '/messages/batches': BATCHES,
    '/complete': 'a prompt without messages is not offered: call /v1/messages',
    '/files': FILES,
  }),
  'google-generate': refused({
    ':embedContent': 'only text is generated',
    ':batchEmbedContents': 'only text is generated',
    ':batchGenerateContent': BATCHES,
    '/cachedContents': 'contents cached by the provider are not offered',
    '/files': FILES,
    '/interactions': STATELESS,
  }),
};

export const pathFeatures = (dialect: DialectName): Feature[] => featuresOf('paths', RULES[dialect]);

/** Why there is nothing at the path; undefined: it is of no provider's API that is known here. */
export function whyNotOffered(dialect: DialectName, path: string): string | undefined {
  const rules = Object.entries({ ...RULES['openai-chat'], ...RULES['openai-responses'], ...RULES[dialect] });
  const isAt = (name: string): boolean =>
    name.startsWith(':') ? path.endsWith(name) : path === name || path.startsWith(name);
  return rules.find(([name]) => isAt(name))?.[1].how;
}
