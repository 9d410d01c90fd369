// The anthropic-messages dialect: models.
import type { JsonObject } from '../../domain/json.ts';

export const modelBody = (id: string): JsonObject => ({
  type: 'model',
  id,
  display_name: id,
  created_at: '1970-01-01T00:00:00Z',
});

export const modelsBody = (ids: readonly string[]): JsonObject => ({
  data: ids.map(modelBody),
  has_more: false,
  first_id: ids[0] ?? null,
  last_id: ids.at(-1) ?? null,
});
