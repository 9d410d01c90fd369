// The google-generate dialect: models.
import type { JsonObject } from '../../domain/json.ts';

export const modelBody = (id: string): JsonObject => ({
  name: `models/${id}`,
  displayName: id,
  version: '1',
  supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
});
