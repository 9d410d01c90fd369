// OpenAI's dialects: models.
import type { JsonObject } from '../../domain/json.ts';

/** One model of the models list. */
export const modelBody = (id: string): JsonObject => ({
  id,
  object: 'model',
  created: 0,
  owned_by: 'polar',
});

export const modelsBody = (ids: readonly string[]): JsonObject => ({
  object: 'list',
  data: ids.map(modelBody),
});
