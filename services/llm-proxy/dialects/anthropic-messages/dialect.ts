// The anthropic-messages dialect: POST /v1/messages.
import type { Dialect } from '../dialect.ts';
import { errorBody } from './errors.ts';
import { modelBody, modelsBody } from './models.ts';
import { readMessagesRequest } from './request.ts';
import { features } from './rules.ts';

export const anthropicMessages: Dialect = {
  name: 'anthropic-messages',
  features,
  read: (body, _, allowed) => readMessagesRequest(body, allowed),
  errorBody,
  modelBody,
  modelsBody,
  countBody: (tokens) => ({ input_tokens: tokens }),
};
