// Where OpenAI's API is at the address of an engine or a judge.

/** Not all have it below /v1: `/v1beta/openai`, `/api/paas/v4`. */
const VERSION = /\/v\d\w*(?=\/|$)/;

/** What stands for `/v1` in its paths; `pathname` is the address's, with or without it. */
export function apiPath(pathname: string): string {
  const path = pathname.replace(/\/+$/, '');
  return VERSION.test(path) ? path : `${path}/v1`;
}
