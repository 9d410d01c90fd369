// What a service shows at /metrics, read as Prometheus reads it.
const SAMPLE = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/;

/** Of one metric, by its labels as they are shown; '' for none. */
export type Samples = ReadonlyMap<string, number>;

/** By the name of the metric. Throws where a line is none of the format. */
export async function metricsOf(
  url: string,
  headers: Record<string, string> = {},
): Promise<Map<string, Samples>> {
  const answer = await fetch(`${url}/metrics`, { headers });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  const found = new Map<string, Map<string, number>>();
  for (const line of (await answer.text()).split('\n')) {
    if (line === '' || line.startsWith('# ')) continue;
    const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? [];
    if (name === '' || Number.isNaN(Number(value))) throw new Error(`no sample: ${line}`);
    const samples = found.get(name) ?? new Map<string, number>();
    found.set(name, samples.set(labels, Number(value)));
  }
  return found;
}
