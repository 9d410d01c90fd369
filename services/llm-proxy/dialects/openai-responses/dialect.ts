// The openai-responses dialect: POST /v1/responses.
import type { Dialect } from '../dialect.ts';
import { featuresOf } from '../features.ts';
import { pathFeatures } from '../not-offered.ts';
import { errorBody } from '../openai-chat/errors.ts';
import { modelBody, modelsBody } from '../openai-chat/models.ts';
import { FIELDS } from './fields.ts';
import { itemFeatures } from './items.ts';
import { contentFeatures } from './parts.ts';
import { readResponsesRequest } from './request.ts';
import { isUnknownResponse, refersTo } from './stored.ts';
import { toolFeatures } from './tools.ts';

export const openaiResponses: Dialect = {
  name: 'openai-responses',
  features: [
    ...pathFeatures('openai-responses'),
    ...featuresOf('fields', FIELDS),
    ...itemFeatures,
    ...contentFeatures,
    ...toolFeatures,
  ],
  refersTo,
  read: (body, _, allowed, known) => readResponsesRequest(body, allowed, known?.found),
  errorBody: (error, status) =>
    errorBody(error, status, 'input', isUnknownResponse(error) ? 'previous_response_not_found' : undefined),
  modelBody,
  modelsBody,
  countBody: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
};
