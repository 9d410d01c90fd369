// The only reader of the environment in the command line.
import { join } from 'node:path';
import process from 'node:process';
import { ROOT } from './services.ts';

/** A variable; one that is empty is not set. */
const variable = (name: string): string | undefined => process.env[name] || undefined;

/** Handed on to child processes. */
export const inherited: Readonly<NodeJS.ProcessEnv> = process.env;

export const environment = {
  topology: variable('POLAR_TOPOLOGY'),
  rolloutUrl: variable('POLAR_ROLLOUT_URL'),
  trajectoryUrl: variable('POLAR_TRAJECTORY_URL'),
  natsUrl: variable('POLAR_NATS_URL'),
  /** Access token, sent with every call; white space around it, as of a file's last line, is left out. */
  token: variable('POLAR_TOKEN')?.trim() || undefined,
  /** For meshes with TLS: authorities that are trusted, and what is shown of this side. */
  certificates: {
    ca_file: variable('POLAR_CA_FILE'),
    cert_file: variable('POLAR_CERT_FILE'),
    key_file: variable('POLAR_KEY_FILE'),
  },
  /** What `polar capture` opened for this shell. */
  openSession: { id: variable('SESSION_ID'), attempt: Number(variable('SESSION_ATTEMPT') ?? Number.NaN) },
  /** What a collector of spans is shown, by the name that all senders of them have for it. */
  otlpHeaders: variable('OTEL_EXPORTER_OTLP_HEADERS'),
  /** What browsers ask for before they show the dashboard. */
  dashboardPassword: variable('POLAR_DASHBOARD_PASSWORD'),
  /** Installed harnesses, nats-server, compiled code. */
  cacheDir: variable('POLAR_CACHE_DIR') ?? join(ROOT, '.cache'),
} as const;
