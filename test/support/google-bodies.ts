// Real requests of the google-generate dialect, as harnesses send them.
import { sealReasoning } from '../../services/llm-proxy/dialects/sealed-reasoning.ts';
import type { JsonObject } from '../../services/llm-proxy/domain/json.ts';
import { PIXEL } from './generated.ts';

const IMAGE = { inlineData: { mimeType: 'image/png', data: PIXEL } };
const SCHEMA = {
  type: 'OBJECT',
  properties: {
    path: { type: 'STRING', nullable: true, minLength: '1' },
    many: { type: 'ARRAY', items: { anyOf: [{ type: 'INTEGER' }, { type: 'BOOLEAN' }] } },
  },
  propertyOrdering: ['path'],
};

/** As Gemini CLI sends it. */
const LATE_TURN: JsonObject = {
  systemInstruction: { role: 'user', parts: [{ text: 'You are an agent.' }] },
  contents: [
    { role: 'user', parts: [{ text: '<session_context>' }, { text: 'Look at both.' }] },
    {
      role: 'model',
      parts: [
        { text: 'hm', thought: true },
        { text: 'I look.' },
        {
          functionCall: { id: 'c1', name: 'read', args: { path: 'a' } },
          thoughtSignature: sealReasoning('first this'),
        },
        { functionCall: { name: 'read', args: {} }, thoughtSignature: 'skip_thought_signature_validator' },
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { id: 'c1', name: 'read', response: { output: 'one' } } },
        { functionResponse: { name: 'read', response: { error: 'two' }, parts: [IMAGE] } },
        { text: 'Go on.' },
      ],
    },
  ],
  tools: [
    {
      functionDeclarations: [
        { name: 'read', description: 'Read.', parametersJsonSchema: { type: 'object' } },
        { name: 'list', parameters: SCHEMA },
      ],
    },
  ],
  toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['read'] } },
  generationConfig: { temperature: 1, topP: 0.95, topK: 64, thinkingConfig: { includeThoughts: true } },
};

const UNDERSCORES: JsonObject = {
  system_instruction: { parts: [{ text: 'Be brief.' }] },
  contents: [
    {
      parts: [
        { text: 'see' },
        { inline_data: { mime_type: 'image/png', data: PIXEL } },
        { file_data: { mime_type: 'image/png', file_uri: 'https://example.org/a.png' } },
      ],
    },
  ],
  generation_config: {
    max_output_tokens: 10,
    stop_sequences: ['END'],
    candidate_count: 2,
    seed: 3,
    presence_penalty: 0.1,
    frequency_penalty: 0.1,
    response_mime_type: 'application/json',
    response_schema: SCHEMA,
    thinking_config: { thinking_budget: 0 },
  },
  safety_settings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
};

const NEW_FORMAT: JsonObject = {
  contents: [{ parts: [{ text: 'x' }] }],
  generationConfig: {
    responseFormat: [{ text: { mimeType: 'application/json', schema: { type: 'object' } } }],
    imageConfig: {},
    audioTimestamp: false,
    audioTranscriptionConfig: {},
    enableAffectiveDialog: false,
    enableEnhancedCivicAnswers: false,
  },
};

export const GENERATE_BODIES: readonly JsonObject[] = [
  LATE_TURN,
  UNDERSCORES,
  NEW_FORMAT,
  {
    contents: [{ role: 'user', parts: [{ text: 'hello' }] }],
    toolConfig: { functionCallingConfig: { mode: 'NONE' } },
    generationConfig: {
      responseModalities: ['TEXT'],
      responseMimeType: 'application/json',
      responseJsonSchema: { type: 'object' },
      thinkingConfig: { thinkingLevel: 'HIGH' },
      responseLogprobs: true,
      logprobs: 2,
      mediaResolution: 'MEDIA_RESOLUTION_LOW',
    },
    labels: { a: 'b' },
    serviceTier: 'standard',
    store: false,
    modelArmorConfig: {},
    model: 'models/alias',
  },
];
