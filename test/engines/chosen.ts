// The engines of this run that could be set up.
import type { RealEngine } from './kinds/engine.ts';

export const chosen: RealEngine[] = [];
