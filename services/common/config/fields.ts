// Fields that several parts of the topology have.
import { z } from 'zod';

export const port = z.int().min(1).max(65_535);

export const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of a variable, not the key itself');
