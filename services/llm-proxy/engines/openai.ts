// Any other server with OpenAI's chat API: no ids, so its replies are recorded and never trained.
import { ENGINE_FEATURES } from '../domain/engine-features.ts';
import type { EngineAdapter } from './adapter.ts';

export const openai: EngineAdapter = {
  kind: 'openai',
  features: ENGINE_FEATURES.openai,
  fields: () => ({}),
  knowsLess: true,
  readReply: () => {},
  readChunk: () => {},
  advice: 'an engine of kind openai never does; name its real kind in the topology if it has one',
};
