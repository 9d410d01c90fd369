// The environment of an agent that runs here: what this command has, with the session's addresses, and without what opens
// more of the mesh than the session, or leads its calls elsewhere.

type Environment = Readonly<Record<string, string | undefined>>;

/** An agent may run what its model says: with these it could submit tasks, or reward itself. */
const OF_THE_MESH = [
  'POLAR_TOKEN',
  'POLAR_CERT_FILE',
  'POLAR_KEY_FILE',
  'POLAR_NATS_URL',
  'POLAR_DASHBOARD_PASSWORD',
];

/** Clients read them before the session's own, so that calls or the caller's keys would go where they should not. */
const OF_PROVIDERS = [
  'ANTHROPIC_AUTH_TOKEN',
  'CLAUDE_CODE_USE_BEDROCK',
  'CLAUDE_CODE_USE_VERTEX',
  'GOOGLE_API_KEY',
  'GOOGLE_GENAI_USE_VERTEXAI',
  'OPENAI_API_BASE',
];

const PROXIES = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'];

/** `own` are the session's variables, `url` is where its model is called. */
export function agentEnv(inherited: Environment, own: Environment, url: string): Record<string, string> {
  const left = [...OF_THE_MESH, ...OF_PROVIDERS];
  const kept = Object.entries(inherited).filter(([name]) => !left.includes(name));
  const all = [...kept, ...Object.entries({ ...own, ...direct(inherited, url) })];
  return Object.fromEntries(all.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** The session's key is in the path of each call: the mesh is called directly, as this command does. */
export function direct(inherited: Environment, url: string): Record<string, string> {
  const host = URL.parse(url)?.hostname.replace(/^\[|\]$/g, '') ?? '';
  if (host === '' || PROXIES.every((name) => !inherited[name])) return {};
  const given = inherited['no_proxy'] || inherited['NO_PROXY'] || '';
  // Alone it stands for every host.
  const hosts = given.trim() === '*' ? '*' : [given, host].filter((one) => one !== '').join(',');
  return { no_proxy: hosts, NO_PROXY: hosts };
}
