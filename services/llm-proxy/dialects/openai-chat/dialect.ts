// The openai-chat dialect: POST /v1/chat/completions.
import type { Dialect } from '../dialect.ts';
import { featuresOf } from '../features.ts';
import { pathFeatures } from '../not-offered.ts';
import { contentFeatures } from './content.ts';
import { errorBody } from './errors.ts';
import { FIELDS } from './fields.ts';
import { roleFeatures } from './messages.ts';
import { modelBody, modelsBody } from './models.ts';
import { readChatRequest } from './request.ts';
import { toolFeatures } from './tools.ts';

export const openaiChat: Dialect = {
  name: 'openai-chat',
  features: [
    ...pathFeatures('openai-chat'),
    ...featuresOf('fields', FIELDS),
    ...roleFeatures,
    ...contentFeatures,
    ...toolFeatures,
  ],
  read: (body, _, allowed, known) => readChatRequest(body, allowed, known?.notes),
  errorBody: (error, status) => errorBody(error, status),
  modelBody,
  modelsBody,
};
