// The openai-chat dialect: POST /v1/chat/completions.
import type { Dialect } from '../dialect.ts';
import { errorBody } from './errors.ts';
import { modelBody } from './models.ts';
import { readChatRequest } from './request.ts';

export const openaiChat: Dialect = {
  name: 'openai-chat',
  read: readChatRequest,
  errorBody,
  modelBody,
  modelsBody: (ids) => ({ object: 'list', data: ids.map(modelBody) }),
};
