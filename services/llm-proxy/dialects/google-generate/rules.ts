// The google-generate dialect: what becomes of each field of a request.
import { arrayOf } from '../../domain/json.ts';
import { array, numberFrom, object, text, wholeFrom } from '../checks.ts';
import type { Check } from '../faults.ts';
import { type Feature, featuresOf, type Rule, type Rules } from '../features.ts';
import { pathFeatures } from '../not-offered.ts';

/** Replies that one call may ask for. */
const CANDIDATES_MAX = 8;

const texts: Check = {
  ok: (value) => Array.isArray(value) && value.every(text.ok),
  says: 'must be an array of strings',
};
const never: Check = { ok: () => false, says: '' };
const textOnly: Check = {
  ok: (value) => arrayOf(value).every((one) => one === 'TEXT'),
  says: 'must be TEXT',
};

const ignored = (how: string): Rule => ({ support: 'ignored', how });
const refused = (how: string, check: Check = never): Rule => ({ support: 'refused', how, check });
const mapped = (how: string, check: Check): Rule => ({ support: 'mapped', how, check });

/** Fields of the body, in camel case or with underscores. What has no rule is ignored. */
export const RULES: Rules = {
  contents: mapped('each in its place; those of the model that follow each other are one message', array),
  systemInstruction: { support: 'mapped', how: 'to a first message of role system' },
  tools: mapped('see tools below', array),
  toolConfig: mapped('`functionCallingConfig` to tool_choice; the rest is of tools at the provider', object),
  generationConfig: mapped('see below', object),
  safetySettings: ignored('nothing is filtered'),
  labels: ignored(''),
  serviceTier: ignored(''),
  store: ignored('nothing is kept at a provider'),
  model: ignored('the path names it'),
  modelArmorConfig: ignored('nothing is filtered'),
  cachedContent: refused('contents cached by the provider are not offered'),
  continuationToken: refused('nothing is kept of a reply that was not whole: ask again'),
};

/** Members of `generationConfig`. */
export const GENERATION_RULES: Rules = {
  maxOutputTokens: mapped('to max_tokens', wholeFrom(1)),
  temperature: mapped('to temperature', numberFrom(0, 2)),
  topP: mapped('to top_p', numberFrom(0, 1)),
  topK: mapped('to top_k', numberFrom(-1, Number.MAX_SAFE_INTEGER)),
  stopSequences: mapped('to stop', texts),
  candidateCount: mapped('to n', wholeFrom(1, CANDIDATES_MAX)),
  presencePenalty: mapped('to presence_penalty', numberFrom(-2, 2)),
  frequencyPenalty: mapped('to frequency_penalty', numberFrom(-2, 2)),
  seed: mapped('to seed', wholeFrom(Number.MIN_SAFE_INTEGER)),
  responseMimeType: mapped('`application/json` to response_format; others are refused', text),
  responseSchema: mapped('to response_format, as JSON Schema', object),
  responseJsonSchema: mapped('to response_format', object),
  thinkingConfig: mapped(
    'to enable_thinking and reasoning_effort (`MINIMAL` to `low`); `includeThoughts` decides what is shown',
    object,
  ),
  responseLogprobs: ignored('the reply shows none'),
  logprobs: ignored('the reply shows none'),
  responseFormat: mapped('its `text` to response_format; others are refused', array),
  mediaResolution: ignored(''),
  imageConfig: ignored('replies have no images'),
  audioTimestamp: ignored('audio is refused'),
  audioTranscriptionConfig: ignored('audio is refused'),
  enableAffectiveDialog: ignored('audio is refused'),
  enableEnhancedCivicAnswers: ignored(''),
  translationConfig: refused('translation by the provider is not offered'),
  responseModalities: refused('only TEXT is offered', textOnly),
  speechConfig: refused('speech is not offered'),
  routingConfig: refused('the session decides which model answers'),
  modelSelectionConfig: refused('the session decides which model answers'),
};

/** The members of `generationConfig` that are only called otherwise by engines. */
export const ENGINE_NAMES: Readonly<Record<string, string>> = {
  maxOutputTokens: 'max_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  stopSequences: 'stop',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  seed: 'seed',
};

/** Members of a tool. */
export const TOOL_RULES: Rules = {
  functionDeclarations: mapped(
    'to functions; `parameters` as JSON Schema, `parametersJsonSchema` as it is',
    array,
  ),
  'any other member': refused('runs at the provider and is not offered; declare functions'),
};

/** Parts of contents by what they hold. */
export const PART_RULES: Rules = {
  text: { support: 'mapped', how: 'to text; of the model with `thought`, to reasoning_content' },
  thoughtSignature: {
    support: 'mapped',
    how: 'to the reasoning_content that it holds, where the thought itself is left out',
  },
  inlineData: { support: 'mapped', how: 'images to image_url; others are refused' },
  fileData: {
    support: 'mapped',
    how: 'images at http and https addresses to image_url, where the node has `image_urls`; others are refused',
  },
  functionCall: { support: 'mapped', how: 'to a tool call of the assistant message' },
  functionResponse: {
    support: 'mapped',
    how: 'to a tool message, with its images; its call is found by id, or by name in order',
  },
  'anything else': refused('parts of this kind are not offered'),
};

export const features: readonly Feature[] = [
  ...pathFeatures('google-generate'),
  ...featuresOf('fields', RULES),
  ...featuresOf('generationConfig', GENERATION_RULES),
  ...featuresOf('tools', TOOL_RULES),
  ...featuresOf('content', PART_RULES),
];
