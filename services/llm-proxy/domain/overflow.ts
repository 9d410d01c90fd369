// How engines say that a prompt is too long for the model.
import type { PolarError } from '../../common/errors.ts';

const WORDS = /context[ _](length|window)|maximum context|prompt is too long|longer than the model/i;

/** Whether the engine refused a call because its prompt does not fit. */
export const isOverflow = (error: PolarError): boolean =>
  error.reason === 'ENGINE_REFUSED' && WORDS.test(error.message);
