// The google-generate dialect: POST /v1beta/models/<model>:generateContent and :streamGenerateContent.
import type { Dialect } from '../dialect.ts';
import { errorBody } from './errors.ts';
import { modelBody } from './models.ts';
import { readGenerateRequest } from './request.ts';
import { features } from './rules.ts';

export const googleGenerate: Dialect = {
  name: 'google-generate',
  features,
  read: readGenerateRequest,
  errorBody,
  modelBody,
  modelsBody: (ids) => ({ models: ids.map(modelBody) }),
  countBody: (tokens) => ({ totalTokens: tokens }),
};
